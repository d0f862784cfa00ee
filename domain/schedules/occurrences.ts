import { matchesCron, wallTimes, type Cron } from './cron.ts';
import { offsetPeriodAt, type OffsetPeriod } from './timeZone.ts';

/** When something is due: an expression, the zone whose wall clock it is about, and the time in which it holds. */
export type Timing = { cron: Cron; timezone: string; startAt: Date | null; endAt: Date | null };

/**
 * A time that comes up. Where clocks go forward a wall clock time is `skipped`: it does not exist and nothing is due.
 * Where they go back it comes twice, and is due both times.
 */
export type Upcoming = {
  at: Date | null;
  wallMs: number;
  offsetMs: number | null;
  daylight: 'skipped' | 'first' | 'second' | null;
};

/** No calendar repeats later than this: from one 29 February on some weekday to the next, over a century. */
const HORIZON_MS = 41 * 366 * 86_400_000;

/** True when a run is due at exactly this time. */
export function isDue({ cron, timezone, startAt, endAt }: Timing, at: Date): boolean {
  const ms = at.getTime();
  if ((startAt && ms < startAt.getTime()) || (endAt && ms > endAt.getTime())) return false;
  return matchesCron(cron, ms + offsetPeriodAt(timezone, ms).offsetMs);
}

/**
 * Times due after `after`, in their order, up to and including `until`: the minutes whose wall clock time matches. A
 * wall clock time is exact within a period of one offset, so that nothing is guessed where periods meet.
 */
export function* dueTimes(timing: Timing, after: Date, until: Date | null = null): Generator<Date> {
  for (const { at } of walk(timing, after, until)) if (at) yield at;
}

/** The same as a list of at most `limit`. */
export function listDue(timing: Timing, after: Date, until: Date, limit: number): Date[] {
  const found: Date[] = [];
  for (const time of dueTimes(timing, after, until)) if (found.push(time) === limit) break;
  return found;
}

/** The first time due after `after`, or null when there is none. */
export function nextDue(timing: Timing, after: Date): Date | null {
  for (const time of dueTimes(timing, after)) return time;
  return null;
}

/** The next `count` times due after `after`, with the wall clock times that daylight saving skips between them. */
export function upcoming(timing: Timing, after: Date, count: number): Upcoming[] {
  const found: Upcoming[] = [];
  let due = 0;
  for (const time of walk(timing, after, null)) {
    if (found.length >= 2 * count) break;
    found.push(time);
    if (time.at && ++due === count) break;
  }
  return found;
}

function* walk(
  { cron, timezone, startAt, endAt }: Timing,
  after: Date,
  until: Date | null,
): Generator<Upcoming> {
  const fromMs = Math.max(after.getTime() + 1, startAt?.getTime() ?? -Infinity);
  const lastMs = Math.min(endAt?.getTime() ?? Infinity, until?.getTime() ?? Infinity);
  // Without an end in sight it goes on for as long as something comes.
  let horizonMs = until ? Infinity : fromMs + HORIZON_MS;
  for (let ms = fromMs; ms <= lastMs && ms <= horizonMs;) {
    const period = offsetPeriodAt(timezone, ms);
    const toMs = Math.min(period.endMs, lastMs + 1, horizonMs + 1);
    for (const time of withinPeriod(cron, timezone, period, ms, toMs)) {
      yield time;
      horizonMs = Math.max(horizonMs, (time.at?.getTime() ?? 0) + HORIZON_MS);
    }
    if (toMs === period.endMs && toMs <= lastMs) yield* skippedAfter(cron, timezone, period);
    ms = toMs;
  }
}

function* withinPeriod(
  cron: Cron,
  timezone: string,
  period: OffsetPeriod,
  fromMs: number,
  toMs: number,
): Generator<Upcoming> {
  const { offsetMs, startMs, endMs } = period;
  const again = backwardMs(
    endMs === Infinity ? undefined : offsetPeriodAt(timezone, endMs),
    period,
  );
  const before = backwardMs(
    period,
    startMs === -Infinity ? undefined : offsetPeriodAt(timezone, startMs - 1),
  );
  for (const wallMs of wallTimes(cron, fromMs + offsetMs, toMs + offsetMs)) {
    const ms = wallMs - offsetMs;
    const daylight = ms >= endMs - again ? 'first' : ms < startMs + before ? 'second' : null;
    yield { at: new Date(ms), wallMs, offsetMs, daylight };
  }
}

/** By how much clocks go back from one period to the next. */
const backwardMs = (later: OffsetPeriod | undefined, earlier: OffsetPeriod | undefined): number =>
  later && earlier ? Math.max(0, earlier.offsetMs - later.offsetMs) : 0;

/** Wall clock times between the end of a period and the begin of the next, where clocks go forward. */
function* skippedAfter(
  cron: Cron,
  timezone: string,
  { endMs, offsetMs }: OffsetPeriod,
): Generator<Upcoming> {
  const next = offsetPeriodAt(timezone, endMs);
  for (const wallMs of wallTimes(cron, endMs + offsetMs, endMs + next.offsetMs)) {
    yield { at: null, wallMs, offsetMs: null, daylight: 'skipped' };
  }
}
