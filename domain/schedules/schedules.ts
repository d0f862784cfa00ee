import { LRUCache } from 'lru-cache';
import { parseCron, type Cron } from './cron.ts';
import { nextDue, type Timing } from './occurrences.ts';

/** What happens to a time due while a job of the schedule has not ended. */
export const OVERLAP_POLICIES = ['skip', 'bufferOne', 'allowAll', 'cancelOther'] as const;
export type OverlapPolicy = (typeof OVERLAP_POLICIES)[number];

/** What a run is for: a time due, somebody's wish, or a time of the past that was asked for. */
export const RUN_KINDS = ['due', 'trigger', 'backfill'] as const;
export type RunKind = (typeof RUN_KINDS)[number];

/** What became of a run; one that is buffered waits for a job of the schedule to end. */
export const RUN_OUTCOMES = ['fired', 'skipped', 'failed', 'buffered'] as const;
export type RunOutcome = (typeof RUN_OUTCOMES)[number];

/** Why a run made no job. */
export const RUN_REASONS = [
  'overlap',
  'disabled',
  'missed',
  'changed',
  'deleted',
  'ended',
  'owner_denied',
  'unknown_job_type',
  'payload_invalid',
] as const;
export type RunReason = (typeof RUN_REASONS)[number];

export const DEFAULT_CATCHUP_SECONDS = 60;

/** Temporal takes no shorter window. */
export const MIN_CATCHUP_SECONDS = 10;
export const MAX_CATCHUP_SECONDS = 31_536_000;
export const MAX_JITTER_SECONDS = 86_400;
export const MAX_BACKFILL = 1_000;

/** The job type of a backfill. */
export const BACKFILL = 'schedule.backfill';

/** What says when a schedule is due. */
export type TimingFields = {
  cronExpression: string;
  timezone: string;
  startAt: Date | null;
  endAt: Date | null;
};

const crons = new LRUCache<string, Cron>({ max: 5_000 });

/** When a schedule that was checked before it was saved is due. */
export function timingOf({ cronExpression, timezone, startAt, endAt }: TimingFields): Timing {
  const known = crons.get(cronExpression);
  if (known) return { cron: known, timezone, startAt, endAt };
  const parsed = parseCron(cronExpression);
  if ('errors' in parsed)
    throw new Error(`A saved cron expression cannot be read: ${cronExpression}`);
  crons.set(cronExpression, parsed.cron);
  return { cron: parsed.cron, timezone, startAt, endAt };
}

type Counted = { maxRuns: number | null; runCount: number };

/** The first time due after `after`; null for a schedule that has made as many jobs as it may, or has ended. */
export const nextDueOf = (
  schedule: TimingFields & Counted,
  after: Date,
  runCount: number = schedule.runCount,
): Date | null =>
  schedule.maxRuns !== null && runCount >= schedule.maxRuns
    ? null
    : nextDue(timingOf(schedule), after);

type Window = { catchupWindowSeconds: number; jitterSeconds: number };

/** True when it is too late for a time due: what comes then is not caught up. */
export const isMissed = (
  { catchupWindowSeconds, jitterSeconds }: Window,
  dueAt: Date,
  now: Date,
): boolean => now.getTime() - dueAt.getTime() > (catchupWindowSeconds + jitterSeconds) * 1_000;

/** How much the clocks of Temporal and of a worker may differ; what is due later than that is not due yet. */
const CLOCK_SKEW_MS = 5_000;

export const isAhead = (dueAt: Date, now: Date): boolean =>
  dueAt.getTime() > now.getTime() + CLOCK_SKEW_MS;

/** What is later than this beyond its jitter was caught up: no process, or no Temporal, was there in time. */
const PUNCTUAL_MS = 10_000;

export const isCaughtUp = (jitterSeconds: number, dueAt: Date, decidedAt: Date): boolean =>
  decidedAt.getTime() - dueAt.getTime() > jitterSeconds * 1_000 + PUNCTUAL_MS;

/** Seconds that Temporal has to fire, after which whoever looks at the record does it. */
export const SETTLE_SECONDS = 5;

export type ScheduleState = 'active' | 'paused' | 'ended';

/** A schedule that has no time due any more has ended. */
export const stateOf = ({
  enabled,
  nextDueAt,
}: {
  enabled: boolean;
  nextDueAt: Date | null;
}): ScheduleState => (nextDueAt === null ? 'ended' : enabled ? 'active' : 'paused');
