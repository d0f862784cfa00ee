import type { JobStatus } from '../jobs/jobs.ts';
import type { RetryPolicy } from '../jobs/retry.ts';
import type { TargetRef } from '../jobs/targets.ts';
import type { Authority } from '../shared/caller.ts';
import type { OverlapPolicy, RunKind, RunOutcome, RunReason, TimingFields } from './schedules.ts';

/** A schedule as it is stored. */
export type ScheduleData = TimingFields & {
  id: string;
  tenantId: string;
  name: string;
  description: string;
  jobType: string;
  payload: Record<string, unknown>;
  /** What its jobs are about; null for a job type without targets. */
  target: TargetRef | null;
  /** Who wrote the payload: see `writerKeyOf`. Null if unknown. */
  payloadAuthor: string | null;
  /** Overrides the retry policy of the job type. */
  retryPolicy: Partial<RetryPolicy>;
  overlapPolicy: OverlapPolicy;
  catchupWindowSeconds: number;
  jitterSeconds: number;
  /** Over how long its runs are spread: see `spreadSecondsOf`. */
  spreadSeconds: number;
  maxRuns: number | null;
  /** The number of jobs created for occurrences; triggers and backfills do not count. */
  runCount: number;
  enabled: boolean;
  pausedAt: Date | null;
  pausedBy: string | null;
  pauseReason: string | null;
  /** The authority that its jobs act with. */
  owner: Authority;
  /** The first occurrence that has no run yet; null when the schedule has ended. */
  nextDueAt: Date | null;
  lastRunId: string | null;
  createdBy: string;
  createdAt: Date;
  updatedAt: Date;
  version: number;
};

/** The outcome of an occurrence, of a trigger or of a backfilled occurrence, as it is stored. */
export type ScheduleRunData = {
  id: string;
  scheduleId: string;
  tenantId: string;
  kind: RunKind;
  /** The scheduled time of an occurrence, or the time of a trigger. */
  dueAt: Date;
  outcome: RunOutcome;
  /** Why no job was created. */
  reason: RunReason | null;
  /** The job was created well after the scheduled time: no process decided the run before. */
  caughtUp: boolean;
  jobId: string | null;
  /** Who requested the run; for an occurrence the owner of the schedule. */
  actorId: string;
  decidedAt: Date;
};

/** A run with the state of its job; null when it created none. */
export type ScheduleRunWithJob = ScheduleRunData & {
  job: {
    status: JobStatus;
    errorCode: string | null;
    startedAt: Date | null;
    finishedAt: Date | null;
  } | null;
};
