import { matchesCron, wallTimes, type Cron } from './cron.ts';
import { offsetPeriodAt, type OffsetPeriod } from './timeZone.ts';

/**
 * Determines occurrences: an expression, the IANA time zone whose wall clock it refers to, and
 * inclusive bounds.
 */
export type Timing = { cron: Cron; timezone: string; startAt: Date | null; endAt: Date | null };

/**
 * A wall clock time that matches. Where clocks are set forward it may be `skipped`: that time does
 * not exist and nothing runs. Where they are set back it occurs twice, as `first` and as `second`.
 */
export type UpcomingOccurrence = {
  /** The instant; null for a skipped wall clock time. */
  at: Date | null;
  /** The wall clock time, in milliseconds as if the zone were UTC. */
  wallMs: number;
  /** Wall clock time minus UTC; null for a skipped wall clock time. */
  offsetMs: number | null;
  daylight: 'skipped' | 'first' | 'second' | null;
};

/**
 * The longest time between two occurrences of any expression: from one 29 February on a given
 * weekday to the next, across a century that is not a leap year.
 */
const HORIZON_MS = 41 * 366 * 86_400_000;

/** True when `at` is exactly an occurrence. */
export function isDue({ cron, timezone, startAt, endAt }: Timing, at: Date): boolean {
  const ms = at.getTime();
  if ((startAt && ms < startAt.getTime()) || (endAt && ms > endAt.getTime())) return false;
  return matchesCron(cron, ms + offsetPeriodAt(timezone, ms).offsetMs);
}

/**
 * Yields the occurrences after `after` (exclusive) up to `until` (inclusive), in order: the minutes
 * whose wall clock time matches. The computation goes period by period, since within a period of
 * one UTC offset each wall clock time is unambiguous.
 */
export function* occurrences(
  timing: Timing,
  after: Date,
  until: Date | null = null,
): Generator<Date> {
  for (const { at } of walkOccurrences(timing, after, until)) if (at) yield at;
}

/** The occurrences after `after` up to and including `until`, at most `limit`. */
export function listOccurrences(timing: Timing, after: Date, until: Date, limit: number): Date[] {
  const found: Date[] = [];
  for (const time of occurrences(timing, after, until)) if (found.push(time) === limit) break;
  return found;
}

/** The first occurrence after `after`, or null when there is none. */
export function nextOccurrence(timing: Timing, after: Date): Date | null {
  for (const time of occurrences(timing, after)) return time;
  return null;
}

/**
 * The next `count` occurrences after `after`, together with the wall clock times that a clock
 * change skips between them. At most `2 * count` items.
 */
export function upcomingOccurrences(
  timing: Timing,
  after: Date,
  count: number,
): UpcomingOccurrence[] {
  const found: UpcomingOccurrence[] = [];
  let dueCount = 0;
  for (const time of walkOccurrences(timing, after, null)) {
    if (found.length >= 2 * count) break;
    found.push(time);
    if (time.at && ++dueCount === count) break;
  }
  return found;
}

function* walkOccurrences(
  { cron, timezone, startAt, endAt }: Timing,
  after: Date,
  until: Date | null,
): Generator<UpcomingOccurrence> {
  const fromMs = Math.max(after.getTime() + 1, startAt?.getTime() ?? -Infinity);
  const lastMs = Math.min(endAt?.getTime() ?? Infinity, until?.getTime() ?? Infinity);
  // Without `until`, the search ends when there is no occurrence within the horizon of the last
  // one.
  let horizonMs = until ? Infinity : fromMs + HORIZON_MS;
  for (let ms = fromMs; ms <= lastMs && ms <= horizonMs;) {
    const period = offsetPeriodAt(timezone, ms);
    const toMs = Math.min(period.endMs, lastMs + 1, horizonMs + 1);
    for (const time of occurrencesInPeriod(cron, timezone, period, ms, toMs)) {
      yield time;
      horizonMs = Math.max(horizonMs, (time.at?.getTime() ?? 0) + HORIZON_MS);
    }
    if (toMs === period.endMs && toMs <= lastMs) yield* skippedByTransition(cron, timezone, period);
    ms = toMs;
  }
}

function* occurrencesInPeriod(
  cron: Cron,
  timezone: string,
  period: OffsetPeriod,
  fromMs: number,
  toMs: number,
): Generator<UpcomingOccurrence> {
  const { offsetMs, startMs, endMs } = period;
  const repeatedAtEndMs = setBackMs(
    endMs === Infinity ? undefined : offsetPeriodAt(timezone, endMs),
    period,
  );
  const repeatedAtStartMs = setBackMs(
    period,
    startMs === -Infinity ? undefined : offsetPeriodAt(timezone, startMs - 1),
  );
  for (const wallMs of wallTimes(cron, fromMs + offsetMs, toMs + offsetMs)) {
    const ms = wallMs - offsetMs;
    const daylight =
      ms >= endMs - repeatedAtEndMs ? 'first' : ms < startMs + repeatedAtStartMs ? 'second' : null;
    yield { at: new Date(ms), wallMs, offsetMs, daylight };
  }
}

/** Milliseconds by which clocks are set back from one period to the next; 0 if they are not. */
const setBackMs = (later: OffsetPeriod | undefined, earlier: OffsetPeriod | undefined): number =>
  later && earlier ? Math.max(0, earlier.offsetMs - later.offsetMs) : 0;

/** The matching wall clock times that do not exist, between a period and the next one. */
function* skippedByTransition(
  cron: Cron,
  timezone: string,
  { endMs, offsetMs }: OffsetPeriod,
): Generator<UpcomingOccurrence> {
  const next = offsetPeriodAt(timezone, endMs);
  for (const wallMs of wallTimes(cron, endMs + offsetMs, endMs + next.offsetMs)) {
    yield { at: null, wallMs, offsetMs: null, daylight: 'skipped' };
  }
}
