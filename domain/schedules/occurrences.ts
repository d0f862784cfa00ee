import { DAY_MS, HOUR_MS } from '../shared/durations.ts';
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
 * How far ahead occurrences are searched, from the start of the search: after 400 years the
 * calendar repeats. This also bounds the work of a search, whatever the expression.
 */
const HORIZON_MS = 400 * 365.2425 * DAY_MS;

/** More than any UTC offset, and more than any change of one. */
const MAX_OFFSET_MS = 26 * HOUR_MS;

/** True when `at` is exactly an occurrence. */
export function isDue({ cron, timezone, startAt, endAt }: Timing, at: Date): boolean {
  const ms = at.getTime();
  if ((startAt && ms < startAt.getTime()) || (endAt && ms > endAt.getTime())) return false;
  return matchesCron(cron, ms + offsetPeriodAt(timezone, ms).offsetMs);
}

/**
 * Yields the occurrences after `after` (exclusive) up to `until` (inclusive; by default 400 years
 * later), in order: the minutes whose wall clock time matches. The computation goes period by period,
 * since within a period of one UTC offset each wall clock time is unambiguous.
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

/** The first occurrence after `after`, or null when there is none within 400 years. */
export function nextOccurrence(timing: Timing, after: Date): Date | null {
  for (const time of occurrences(timing, after)) return time;
  return null;
}

/**
 * The next `count` occurrences after `after`, together with the wall clock times that a clock
 * change skips between them. At most `2 * count` items, all within 400 years.
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
  const lastMs = Math.min(
    endAt?.getTime() ?? Infinity,
    until?.getTime() ?? Infinity,
    fromMs + HORIZON_MS,
  );
  for (let ms = fromMs; ;) {
    ms = skipEmptyTime(cron, ms, lastMs);
    if (ms > lastMs) return;
    const period = offsetPeriodAt(timezone, ms);
    const toMs = Math.min(period.endMs, lastMs + 1);
    yield* occurrencesInPeriod(cron, timezone, period, ms, toMs);
    if (toMs === period.endMs && toMs <= lastMs) yield* skippedByTransition(cron, timezone, period);
    ms = toMs;
  }
}

/**
 * An instant from `ms` on before which no wall clock time matches, nor does one that a clock change
 * skips or repeats, whatever the time zone. Determining an offset period costs far more than
 * checking a year of days, so periods without a match are not determined.
 */
function skipEmptyTime(cron: Cron, ms: number, lastMs: number): number {
  for (const wallMs of wallTimes(cron, ms - MAX_OFFSET_MS, lastMs + MAX_OFFSET_MS))
    return Math.max(ms, wallMs - 2 * MAX_OFFSET_MS);
  return Infinity;
}

function* occurrencesInPeriod(
  cron: Cron,
  timezone: string,
  period: OffsetPeriod,
  fromMs: number,
  toMs: number,
): Generator<UpcomingOccurrence> {
  const { offsetMs } = period;
  for (const wallMs of wallTimes(cron, fromMs + offsetMs, toMs + offsetMs)) {
    const ms = wallMs - offsetMs;
    const daylight = isRepeatedLater(timezone, period, ms)
      ? 'first'
      : isRepeated(timezone, period, ms)
        ? 'second'
        : null;
    yield { at: new Date(ms), wallMs, offsetMs, daylight };
  }
}

/** True when the wall clock time of an instant of a period occurs again after the period. */
const isRepeatedLater = (timezone: string, period: OffsetPeriod, ms: number): boolean =>
  ms >= period.endMs - MAX_OFFSET_MS &&
  ms >= period.endMs - setBackMs(period, offsetPeriodAt(timezone, period.endMs));

/** True when the wall clock time of an instant of a period has occurred before the period. */
function isRepeated(timezone: string, period: OffsetPeriod, ms: number): boolean {
  if (ms - MAX_OFFSET_MS >= period.startMs) return false;
  const earlier = offsetPeriodAt(timezone, ms - MAX_OFFSET_MS);
  return earlier.endMs <= ms && ms < earlier.endMs + setBackMs(earlier, period);
}

/** Milliseconds by which clocks are set back from one period to the next; 0 if they are not. */
const setBackMs = (earlier: OffsetPeriod, later: OffsetPeriod): number =>
  Math.max(0, earlier.offsetMs - later.offsetMs);

/** The matching wall clock times that do not exist, between a period and the next one. */
function* skippedByTransition(
  cron: Cron,
  timezone: string,
  { endMs, offsetMs }: OffsetPeriod,
): Generator<UpcomingOccurrence> {
  const fromMs = endMs + offsetMs;
  for (const wallMs of wallTimes(cron, fromMs, fromMs + MAX_OFFSET_MS)) {
    // Only what matches needs the next period.
    if (wallMs >= endMs + offsetPeriodAt(timezone, endMs).offsetMs) return;
    yield { at: null, wallMs, offsetMs: null, daylight: 'skipped' };
  }
}
