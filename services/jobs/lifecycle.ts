import { ignoreNoChange, type Commit, type WriteUnaudited } from '../../db/core/commit.ts';
import { writeChanges, type RecordChange } from '../../db/core/unitOfWork.ts';
import { attemptGuard, jobChange, type JobGuard } from '../../db/jobs/jobs.ts';
import type { Job } from '../../db/models/Job.ts';
import { freeSlotOfFailed } from '../../db/webhooks/deliveryAttempts.ts';
import { cancelJobTask } from '../../domain/dispatch/tasks.ts';
import { jobWorkflowId } from '../../domain/dispatch/workflowIds.ts';
import { mayRunJob } from '../../domain/jobs/jobRights.ts';
import { JobFailure, needsSlot, type JobType, type Lane } from '../../domain/jobs/jobType.ts';
import type { FinalJobStatus, JobError } from '../../domain/jobs/jobs.ts';
import {
  countedAttempts,
  mayRetry,
  repeatsInterrupted,
  retryDelayMs,
  type RetryPolicy,
} from '../../domain/jobs/retry.ts';
import { scopeOfTarget, targetOf, type Target } from '../../domain/jobs/targets.ts';
import type { Rights } from '../../domain/access/scope.ts';
import { systemCaller, type Caller } from '../../domain/shared/caller.ts';
import { HOUR_MS } from '../../domain/shared/durations.ts';
import { isQuotaExceeded } from '../../domain/shared/errors.ts';
import { jobLog, type Log } from '../../platform/log.ts';
import type { UserRights } from '../access/rights.ts';
import { busyFailure } from './busy.ts';
import type { JobCompletion } from './completion.ts';
import { jobFinishedTopic, jobLogTopic, jobRecord, type JobView } from './jobAudit.ts';
import type { ReportJobEnd } from './reportJobEnd.ts';
import { retryWrite } from './retryWrite.ts';
import type { JobTargets } from './targets.ts';
import type { PendingLog, RunLog } from './runLog.ts';

export type JobLifecycle = ReturnType<typeof createJobLifecycle>;

/** A workflow run of a job. */
export type JobRunRef = { jobId: string; runId: string };

/** A failed attempt, as Temporal learns of it. The message of the failure stays in PostgreSQL. */
export class AttemptFailed extends Error {
  readonly code: string;
  /** Milliseconds until the next attempt, or null when there is none. */
  readonly retryInMs: number | null;

  constructor(code: string, retryInMs: number | null) {
    super(code);
    this.name = 'AttemptFailed';
    this.code = code;
    this.retryInMs = retryInMs;
  }
}

type LifecycleDeps = {
  commit: Commit;
  writeUnaudited: WriteUnaudited;
  rights: UserRights;
  jobCompletion: JobCompletion;
  jobTargets: JobTargets;
  /** Called when a job releases its slot. Must not throw. */
  onSlotFreed(): void;
  reportJobEnd: ReportJobEnd;
  log: Log;
};

/** A run checks a lease again this long after its end, in milliseconds. */
export const LEASE_CHECK_MS = 200;

/** Longest wait that `Retry-After` of another server can cause. */
const MAX_RETRY_AFTER_MS = HOUR_MS;

/** The reconciler checks a job that waits for its next attempt at the latest after this time. */
const MAX_UNCHECKED_MS = HOUR_MS;

/**
 * What follows after attempt number `attempt` has failed: in how many milliseconds the next one is due,
 * or null if there is none, and the line that the log of the job gets. `counted` is how many attempts the
 * policy counts, this one included.
 */
export function planRetry(
  policy: RetryPolicy,
  attempt: number,
  { code, message, retryable, retryAfterMs = 0 }: JobFailure,
  counted = attempt,
): { retryInMs: number | null; line: string } {
  const retryInMs =
    retryable && mayRetry(policy, counted, code)
      ? Math.max(
          retryDelayMs(policy, Math.max(counted, 1)),
          Math.min(retryAfterMs, MAX_RETRY_AFTER_MS),
        )
      : null;
  const next = retryInMs === null ? 'no further attempt' : `next attempt in ${retryInMs / 1_000} s`;
  return { retryInMs, line: `Attempt ${attempt} failed: ${code}: ${message}; ${next}` };
}

/**
 * The worker of an attempt was stopped in order, or was asked to stop the attempt: the message says why. The attempt
 * ends, and another worker repeats it.
 */
export class WorkerStopping extends Error {}

/** The line that the log of a job gets about what was interrupted. */
export const interruptionLine = (what: string, reason: unknown): string => {
  const why = reason instanceof WorkerStopping ? reason.message : '';
  return `${what} was interrupted${why && `: ${why}`}`;
};

/** When the job's own run repeats an attempt that was interrupted. */
export const INTERRUPTED = new AttemptFailed('interrupted', 200);

/** What a job gets when its attempt is interrupted by an orderly stop. */
export const interruption = ({ retryPolicy, interruptions }: Job): { interruptions?: number } =>
  repeatsInterrupted(retryPolicy) ? { interruptions: interruptions + 1 } : {};

/** The time of the last check of a job whose next attempt is due in `retryInMs`. */
export const checkedBefore = (retryInMs: number, now: Date): Date =>
  new Date(now.getTime() + Math.min(retryInMs, MAX_UNCHECKED_MS));

/** `interruptions`: the new number, if an orderly stop has ended the attempt. */
type FailedAttempt = { error: JobError; retryInMs: number; interruptions?: number };

/** The steps of a multi-step job share one slot, which it keeps. */
const freesSlot = (lane: Lane, retryInMs: number): boolean =>
  needsSlot(lane) && lane !== 'workflow' && retryInMs > 0;

/**
 * While a short job waits in a run of its own, no run has it: the record says so that no attempt is in progress. A shared
 * run, or a process, still hands the job on to its own run.
 */
const leavesRun = ({ workflowId }: Job, lane: Lane, retryInMs: number): boolean =>
  lane === 'inline' && workflowId === null && retryInMs > 0;

/** How a job ends. `guard` is the state that the job must be in. */
type JobOutcome = {
  status: FinalJobStatus;
  /** JSON text. */
  result?: string;
  error?: JobError;
  guard: JobGuard;
  /** Another record that the same commit changes. If that record needs no change, the job does not end either. */
  also?: RecordChange | undefined;
  /** The workflow of the job would wait for ever: it is cancelled. */
  cancelsRun?: boolean;
};

const AUDIT_VERBS: Readonly<Record<FinalJobStatus, string>> = {
  succeeded: 'succeed',
  failed: 'fail',
  cancelled: 'cancel',
};

/**
 * What the attempts of all lanes do to the record of their job. Repeating any of it changes
 * nothing.
 */
export function createJobLifecycle({
  commit,
  writeUnaudited,
  rights,
  jobCompletion,
  jobTargets,
  onSlotFreed,
  reportJobEnd,
  log,
}: LifecycleDeps) {
  /** Moves a job to its final status; false when `guard` does not hold, because another run did. */
  async function finish(
    job: Job,
    { lines, progress }: PendingLog,
    outcome: JobOutcome,
  ): Promise<boolean> {
    const error = outcome.error ?? null;
    const done = await commit(systemCaller(job.tenantId, jobWorkflowId(job.id)), async (work) => {
      const values = {
        status: outcome.status,
        updated_at: work.now,
        finished_at: work.now,
        leased_until: null,
        result: outcome.result ?? null,
        error: error && JSON.stringify(error),
        ...progress,
      };
      const topics = [jobFinishedTopic(job.id), jobLogTopic(job.id)];
      work.change(jobChange({ jobId: job.id, guard: outcome.guard, values, lines, topics }));
      if (outcome.also) work.change(outcome.also);
      if (outcome.cancelsRun === true) work.dispatch(cancelJobTask(job));
      const finished = { ...toJobView(job), status: outcome.status, error };
      jobRecord.acted(work, AUDIT_VERBS[outcome.status], job, { before: job, after: finished });
      await jobCompletion.onJobFinished(work, finished);
      return true;
    }).catch(ignoreNoChange(false));
    if (done && job.slot !== null) onSlotFreed();
    if (done) reportJobEnd(job, { status: outcome.status, code: error?.code ?? null });
    return done;
  }

  /** The changes of a job whose attempt has failed, and which waits for the next one. */
  function failedAttempt(
    job: Job,
    lane: Lane,
    { lines, progress }: PendingLog,
    { error, retryInMs, interruptions }: FailedAttempt,
    now: Date,
  ): RecordChange[] {
    const values = {
      error: JSON.stringify(error),
      updated_at: now,
      checked_at: checkedBefore(retryInMs, now),
      ...(freesSlot(lane, retryInMs) && { slot: null }),
      ...(leavesRun(job, lane, retryInMs) && { run_id: null }),
      ...(interruptions !== undefined && { interruptions }),
      ...progress,
    };
    return [
      jobChange({
        jobId: job.id,
        guard: attemptGuard(job),
        values,
        lines,
        topics: [jobLogTopic(job.id)],
      }),
      ...(lane === 'delivery' && retryInMs > 0 ? [freeSlotOfFailed(job.id, now)] : []),
    ];
  }

  /**
   * Records the error of an attempt; the job keeps it until an attempt succeeds. A job that waits
   * for its next attempt releases its slot. A failure to write is only logged: whether Temporal
   * retries must depend on the attempt, not on the database.
   */
  async function recordFailedAttempt(
    job: Job,
    lane: Lane,
    pending: PendingLog,
    failed: FailedAttempt,
  ): Promise<void> {
    const { error, retryInMs } = failed;
    const write = () =>
      writeUnaudited((db, now) => writeChanges(db, failedAttempt(job, lane, pending, failed, now)));
    await retryWrite(write, lane).catch((failure: unknown) => {
      jobLog(log, job.id, job.workflowId).error(
        { err: failure, attempt: job.attempts, code: error.code },
        'a failed attempt could not be recorded',
      );
    });
    if (freesSlot(lane, retryInMs)) onSlotFreed();
  }

  /**
   * Records a failed attempt that another one follows, and `also`, in one commit; false when it is not
   * the current one, or there is nothing to change of `also`.
   */
  async function recordRetry(
    job: Job,
    lane: Lane,
    pending: PendingLog,
    failed: FailedAttempt,
    also: RecordChange,
  ): Promise<boolean> {
    const done = await writeUnaudited((db, now) =>
      writeChanges(db, [...failedAttempt(job, lane, pending, failed, now), also]),
    );
    if (done && freesSlot(lane, failed.retryInMs)) onSlotFreed();
    return done;
  }

  /**
   * Records a failed attempt with its next retry, then throws `AttemptFailed`. `attempt` is its
   * number, where that is not the job's: of the steps of a multi-step job, only failures are counted.
   */
  async function failAttempt(
    job: Job,
    lane: Lane,
    runLog: RunLog,
    failure: JobFailure,
    attempt = job.attempts,
  ): Promise<never> {
    const { code, message, response } = failure;
    const counted = countedAttempts({ attempts: attempt, interruptions: job.interruptions });
    const { retryInMs, line } = planRetry(job.retryPolicy, attempt, failure, counted);
    runLog.logSystem('error', line, response && { response });
    const error = { code, message, ...(response && { response }) };
    await recordFailedAttempt(job, lane, runLog.drain(), { error, retryInMs: retryInMs ?? 0 });
    throw new AttemptFailed(code, retryInMs);
  }

  /** The target of a job as it is now; null without one. Error: `JobFailure('target_not_found')`. */
  async function targetForJob(job: Job, type: JobType, held: Rights): Promise<Target | null> {
    const ref = targetOf(job);
    const owner = { tenantId: job.tenantId, target: ref };
    const target = await jobTargets.findFor(type, held, owner);
    if (target !== undefined) return target;
    throw new JobFailure(
      'target_not_found',
      ref?.kind === type.targets
        ? `There is no such ${ref.kind} here, or ${job.authority.actorId} may not read it`
        : 'Jobs of the type are about other records now',
      { retryable: false },
    );
  }

  /**
   * The caller that a job acts for, with its current rights, and the target of the job. The rights are
   * checked at the site where the target is now. Errors: `JobFailure('permission_lost')` when these no longer allow the
   * job, `JobFailure('target_not_found')`.
   */
  async function contextForJob(
    job: Job,
    type: JobType,
  ): Promise<{ caller: Caller; target: Target | null }> {
    const { actorId } = job.authority;
    const caller = {
      ...systemCaller(job.tenantId, jobWorkflowId(job.id)),
      actorId,
      rights: await rights.forAuthority(job.authority),
    };
    const target = await targetForJob(job, type, caller.rights);
    if (mayRunJob(caller.rights, type, target ? scopeOfTarget(target) : job))
      return { caller, target };
    throw new JobFailure('permission_lost', `${actorId} may no longer run ${job.type} here`, {
      retryable: false,
    });
  }

  /** The caller of `contextForJob`. */
  const callerForJob = async (job: Job, type: JobType): Promise<Caller> =>
    (await contextForJob(job, type)).caller;

  return { finish, recordFailedAttempt, recordRetry, failAttempt, callerForJob, contextForJob };
}

/** The fields of a job that audit entries and events need, before it ends. */
export const toJobView = (job: Job): Omit<JobView, 'status' | 'error'> => ({
  id: job.id,
  type: job.type,
  tenantId: job.tenantId,
  targetSiteId: job.targetSiteId,
  targetDeviceId: job.targetDeviceId,
  createdBy: job.createdBy,
  retryPolicy: job.retryPolicy,
  retryOf: job.retryOf,
  attempts: job.attempts,
  sourceKind: job.sourceKind,
  sourceId: job.sourceId,
});

/**
 * Converts what a job type threw. An unexpected error is logged, and its message stays in the log.
 */
export function toJobFailure(error: unknown, log: Log, job: Job): JobFailure {
  if (error instanceof JobFailure) return error;
  if (isQuotaExceeded(error))
    return new JobFailure(error.code, error.message, { retryable: false });
  const busy = busyFailure(error);
  if (busy) return busy;
  jobLog(log, job.id, job.workflowId).error(
    { err: error, jobType: job.type, attempt: job.attempts, runId: job.runId },
    'a job type threw an unexpected error',
  );
  return new JobFailure(
    'unexpected',
    'The job type failed unexpectedly; the log of the worker has the details',
  );
}
