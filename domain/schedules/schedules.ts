import { LRUCache } from 'lru-cache';
import { parseCron, type Cron } from './cron.ts';
import {
  nextOccurrence,
  upcomingOccurrences,
  type Timing,
  type UpcomingOccurrence,
} from './occurrences.ts';
import { canonicalTimeZone } from './timeZone.ts';

/** What happens to an occurrence while a job of the schedule is unfinished. */
export const OVERLAP_POLICIES = ['skip', 'bufferOne', 'allowAll', 'cancelOther'] as const;
export type OverlapPolicy = (typeof OVERLAP_POLICIES)[number];

/** What a run is for: an occurrence, a request to run now, or a requested past occurrence. */
export const RUN_KINDS = ['scheduled', 'trigger', 'backfill'] as const;
export type RunKind = (typeof RUN_KINDS)[number];

/** The outcome of a run. A `buffered` run waits for a job of the schedule to end. */
export const RUN_OUTCOMES = ['fired', 'skipped', 'failed', 'buffered'] as const;
export type RunOutcome = (typeof RUN_OUTCOMES)[number];

/** Why a run created no job. */
export const RUN_REASONS = [
  'overlap',
  'paused',
  'missed',
  'changed',
  'deleted',
  'ended',
  'owner_denied',
  'unknown_job_type',
  'job_type_disabled',
  'payload_invalid',
  'target_not_found',
  'reference_not_found',
  'quota_exceeded',
] as const;
export type RunReason = (typeof RUN_REASONS)[number];

/** Long enough for a restart or an upgrade: an occurrence during it still runs. */
export const DEFAULT_CATCHUP_SECONDS = 3_600;

/** The shortest catch-up window that Temporal accepts. */
export const MIN_CATCHUP_SECONDS = 10;
export const MAX_CATCHUP_SECONDS = 31_536_000;
export const MAX_JITTER_SECONDS = 86_400;
export const MAX_BACKFILL = 1_000;

/** The job type of a backfill. */
export const BACKFILL_JOB = 'schedule.backfill';

/** The fields of a schedule that determine its occurrences. Both bounds are inclusive. */
export type TimingFields = {
  cronExpression: string;
  timezone: string;
  startAt: Date | null;
  endAt: Date | null;
};

const cronCache = new LRUCache<string, Cron>({ max: 5_000 });

/**
 * Why this process cannot compute the occurrences of a saved schedule; null if it can. What is saved was checked,
 * but by a process that may have had other time zone data, or other rules.
 */
export function timingProblemOf({
  cronExpression,
  timezone,
}: Pick<TimingFields, 'cronExpression' | 'timezone'>): string | null {
  if (canonicalTimeZone(timezone) === undefined)
    return `The time zone ${timezone} is not in the time zone data of this server: choose another one, or update them.`;
  const parsed = cronCache.has(cronExpression) ? undefined : parseCron(cronExpression);
  if (!parsed || 'cron' in parsed) return null;
  return 'The cron expression is no longer accepted: change it.';
}

/**
 * The parsed timing of a saved schedule. An expression that cannot be parsed throws: see `timingProblemOf`.
 */
export function timingOf({ cronExpression, timezone, startAt, endAt }: TimingFields): Timing {
  const cached = cronCache.get(cronExpression);
  if (cached) return { cron: cached, timezone, startAt, endAt };
  const parsed = parseCron(cronExpression);
  if ('errors' in parsed)
    throw new Error(`A saved cron expression cannot be read: ${cronExpression}`);
  cronCache.set(cronExpression, parsed.cron);
  return { cron: parsed.cron, timezone, startAt, endAt };
}

type RunLimit = { maxRuns: number | null; runCount: number };

/** True when a schedule has run as often as it may. */
export const hasAllRuns = ({ maxRuns, runCount }: RunLimit, count: number = runCount): boolean =>
  maxRuns !== null && count >= maxRuns;

/**
 * The first occurrence after `after`, exclusive. Null when `runCount` has reached `maxRuns`, or
 * when the expression yields none before `endAt`.
 */
export const nextOccurrenceOf = (
  schedule: TimingFields & RunLimit,
  after: Date,
  runCount: number = schedule.runCount,
): Date | null =>
  hasAllRuns(schedule, runCount) ? null : nextOccurrence(timingOf(schedule), after);

/** As `nextOccurrenceOf`; the saved occurrence if others are not known, and none after the last run. */
export const nextKnownOf = (
  schedule: TimingFields & RunLimit & { nextDueAt: Date | null },
  after: Date,
  runCount: number = schedule.runCount,
): Date | null =>
  timingProblemOf(schedule) === null || hasAllRuns(schedule, runCount)
    ? nextOccurrenceOf(schedule, after, runCount)
    : schedule.nextDueAt;

/**
 * The next `count` occurrences of a schedule after `now`, together with the wall clock times that a
 * clock change skips between them. None for a schedule that is paused or has ended, or with a timing problem.
 */
export function upcomingOf(
  schedule: TimingFields & RunLimit & { enabled: boolean; nextDueAt: Date | null },
  now: Date,
  count: number,
): UpcomingOccurrence[] {
  if (!schedule.enabled || schedule.nextDueAt === null || timingProblemOf(schedule)) return [];
  const remaining =
    schedule.maxRuns === null ? count : Math.min(count, schedule.maxRuns - schedule.runCount);
  return remaining > 0 ? upcomingOccurrences(timingOf(schedule), now, remaining) : [];
}

/** A tenant with more schedules than this has later ones spread. */
const SCHEDULES_AT_ONE_TIME = 10;

/** With the delay of catch-up, spread occurrences run before the next minute. */
const MAX_SPREAD_SECONDS = 50;

/**
 * Over how many seconds the runs of a new schedule are spread, for a tenant that owns `owned`
 * already. So few schedules run exactly on time, and many do not all start in the same second,
 * which would delay the work of other tenants. Every further schedule adds a second.
 */
export const spreadSecondsOf = (owned: number): number =>
  Math.min(Math.max(owned + 1 - SCHEDULES_AT_ONE_TIME, 0), MAX_SPREAD_SECONDS);

type Delays = { jitterSeconds: number; spreadSeconds: number };

/** How long Temporal may delay a run. Jitter that is longer than the spread spreads enough. */
export const maxDelaySeconds = ({ jitterSeconds, spreadSeconds }: Delays): number =>
  Math.max(jitterSeconds, spreadSeconds);

/** Temporal delays runs by whole seconds; what it starts in the same second is spread over most of that second. */
const WITHIN_SECOND_MS = 900;

/** How long a run that Temporal may delay waits further, in milliseconds. `random` is from 0 to 1. */
export const delayWithinSecondMs = (delays: Delays, random: number): number =>
  maxDelaySeconds(delays) === 0 ? 0 : random * WITHIN_SECOND_MS;

/**
 * True when `dueAt` is older than catch-up window and delay together: it must not run any more.
 */
export const isMissed = (
  schedule: Delays & { catchupWindowSeconds: number },
  dueAt: Date,
  now: Date,
): boolean =>
  now.getTime() - dueAt.getTime() >
  (schedule.catchupWindowSeconds + maxDelaySeconds(schedule)) * 1_000;

/** How much the clocks of Temporal and of a worker may differ. */
const CLOCK_SKEW_MS = 5_000;

/** True when `dueAt` is in the future, even with clocks that differ. */
export const isInFuture = (dueAt: Date, now: Date): boolean =>
  dueAt.getTime() > now.getTime() + CLOCK_SKEW_MS;

/** A run decided later than this after its scheduled time and delay counts as caught up. */
const CAUGHT_UP_AFTER_MS = 10_000;

/** True when no process, or no Temporal, was available at the scheduled time of a run. */
export const isCaughtUp = (schedule: Delays, dueAt: Date, decidedAt: Date): boolean =>
  decidedAt.getTime() - dueAt.getTime() > maxDelaySeconds(schedule) * 1_000 + CAUGHT_UP_AFTER_MS;

/** Seconds that Temporal has to start a run, after which catch-up runs it from the record. */
export const CATCH_UP_DELAY_SECONDS = 5;

export type ScheduleState = 'active' | 'paused' | 'ended';

/** The state of a schedule; one without a next occurrence has ended. */
export const stateOf = ({
  enabled,
  nextDueAt,
}: {
  enabled: boolean;
  nextDueAt: Date | null;
}): ScheduleState => (nextDueAt === null ? 'ended' : enabled ? 'active' : 'paused');
