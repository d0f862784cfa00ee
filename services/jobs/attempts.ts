import type { WriteUnaudited } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import {
  attemptGuard,
  claimAttempts,
  findLeasedAttempts,
  isCancelRequested,
  takeFromRun,
} from '../../db/jobs/jobs.ts';
import { Job } from '../../db/models/Job.ts';
import type { DescribeWorkflow } from '../../domain/dispatch/tasks.ts';
import { JobFailure, needsSlot, type JobType, type Lane } from '../../domain/jobs/jobType.ts';
import { isFinal, type JobError } from '../../domain/jobs/jobs.ts';
import { countedAttempts } from '../../domain/jobs/retry.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { Ids } from '../../platform/ids.ts';
import type { Log } from '../../platform/log.ts';
import { inSpanOf } from '../../platform/tracing.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import { AttemptSuperseded, type AttemptWatch } from './attemptWatch.ts';
import { claimReport } from './claimReport.ts';
import {
  AttemptFailed,
  interruption,
  interruptionLine,
  LEASE_CHECK_MS,
  toJobFailure,
  WorkerStopping,
  type JobLifecycle,
  type JobRunRef,
} from './lifecycle.ts';
import type { JobSlots } from './slots.ts';
import { retryWrite } from './retryWrite.ts';
import { createRunLog, type PendingLog, type RunLog } from './runLog.ts';
import { serializeResult } from '../shared/serializeResult.ts';
import { createTakeOver, TAKEN_OVER } from './takeOver.ts';
import { TypeNotKnownHere, type UnknownTypes } from './unknownTypes.ts';

export { AttemptFailed } from './lifecycle.ts';

export type JobAttempts = ReturnType<typeof createJobAttempts>;

/** A run of several jobs, and its workflow. */
export type SharedRunRef = { runId: string; workflowId: string };

/** Records that an attempt has succeeded; false if it was not the current one any more. */
type RecordSuccess = (job: Job, pendingLog: PendingLog, result: string) => Promise<boolean>;

/** Asked before an attempt is counted: null admits it, a number is the milliseconds to wait. */
export type AdmissionCheck = (jobId: string) => Promise<number | null>;

type Deps = {
  db: Knex;
  ids: Ids;
  writeUnaudited: WriteUnaudited;
  jobLifecycle: JobLifecycle;
  /** Called when the event of a first attempt is committed. Must not throw. */
  onEventsCommitted(): void;
  jobTypes: JobTypes;
  jobSlots: JobSlots;
  unknownTypes: UnknownTypes;
  attemptWatch: Pick<AttemptWatch, 'watch'>;
  describeWorkflow: DescribeWorkflow;
  /** Admission checks by lane. Lanes without one admit every attempt. */
  admissionChecks: Partial<Record<Lane, AdmissionCheck>>;
  log: Log;
};

const ERROR_MESSAGES: Readonly<Record<string, string>> = {
  worker_lost: 'The worker stopped during the last attempt that the retry policy allows',
  timed_out: 'The attempt took longer than its type allows',
  unexpected: 'An unexpected error occurred; the log of the worker has the details',
  workflow_lost: 'The workflow that ran the job no longer exists',
  workflow_terminated: 'The workflow that ran the job was terminated',
  workflow_closed: 'The workflow that ran the job closed without an outcome',
  concurrency_limit: 'As many jobs of the type run as its concurrency limit allows',
};

/** Added when the attempt of a job that must not be repeated has left no result. */
const OUTCOME_UNKNOWN =
  'Whether the attempt took effect is unknown, so the job is not repeated by itself';

const INTERRUPTED: JobError = { code: 'interrupted', message: 'The attempt was interrupted' };

/**
 * The error of a job that ended with `code`. The error of its last attempt says more than the code.
 * All codes with a message mean that an attempt, if one was made, has left no result.
 */
function errorFor(
  job: Job,
  type: JobType | undefined,
  code: string,
  message = ERROR_MESSAGES[code],
): JobError {
  if (job.error?.code === code) return job.error;
  if (message === undefined) return { code, message: `The job ended with ${code}` };
  const isUnknown = job.status === 'running' && type?.isRepeatable(job.payload) === false;
  return isUnknown
    ? { code: 'outcome_unknown', message: `${message}. ${OUTCOME_UNKNOWN}` }
    : { code, message };
}

const attemptSpan = (job: Job) => ({
  attributes: {
    'holdfast.job.id': job.id,
    'holdfast.job.type': job.type,
    'holdfast.job.attempt': job.attempts,
    'holdfast.tenant.id': job.tenantId,
  },
});

/** What the job workflow does with the record of its job. Each activity may run more than once. */
export function createJobAttempts({
  db,
  ids,
  writeUnaudited,
  jobLifecycle: lifecycle,
  onEventsCommitted,
  jobTypes,
  jobSlots,
  unknownTypes,
  attemptWatch,
  admissionChecks,
  describeWorkflow,
  log,
}: Deps) {
  const takeOver = createTakeOver({ db, describeWorkflow });

  /** Runs the job type within its time limit. Returns the result as JSON text. */
  async function runJobType(
    job: Job,
    type: JobType,
    runLog: RunLog,
    signal: AbortSignal,
  ): Promise<string> {
    if (type.lane === 'workflow' || type.lane === 'remote')
      throw new JobFailure('unexpected', 'The worker does not do the work of the job', {
        retryable: false,
      });
    const { caller, target } = await lifecycle.contextForJob(job, type);
    const timeout = AbortSignal.timeout(type.timeoutMs);
    const result = await type
      .run(job.payload, {
        attempt: job.attempts,
        runId: assertDefined(job.runId, 'job.runId'),
        startedAt: assertDefined(job.startedAt, 'job.startedAt'),
        jobId: job.id,
        source: { kind: job.sourceKind, id: job.sourceId },
        target,
        caller,
        currentCaller: () => lifecycle.callerForJob(job, type),
        signal: AbortSignal.any([signal, timeout]),
        log: runLog.log,
        progress: runLog.progress,
      })
      .catch((error: unknown) => {
        if (!timeout.aborted) throw error;
        throw new JobFailure('timed_out', `The attempt took longer than ${type.timeoutMs} ms`);
      });
    return serializeResult(result);
  }

  /** Claims the next attempts of jobs. The first attempt of a job is an event. */
  async function claim(
    jobIds: readonly string[],
    lane: Lane,
    run: Pick<
      Parameters<typeof claimAttempts>[1],
      'runId' | 'workflowId' | 'needsSlot' | 'leaseMs'
    >,
  ): Promise<Job[]> {
    const report = claimReport({ ids, jobTypes }, jobIds, lane);
    const claimed = await writeUnaudited((executor, now) =>
      claimAttempts(executor, {
        ...run,
        jobIds,
        types: jobTypes.ownNames(),
        isShort: lane === 'inline',
        now,
        ...report,
      }),
    );
    if (claimed.some(({ attempts }) => attempts === 1)) onEventsCommitted();
    return claimed;
  }

  /**
   * Claims the next attempt; undefined when this run has nothing to do. Errors:
   * `AttemptFailed('worker_lost')` when the last attempt of this run ended with its worker;
   * `AttemptFailed('no_slot')`; `AttemptFailed('leased')` while a process makes an attempt;
   * `AttemptFailed('claim_lost')` when that process has left the job in this moment, or this run has taken it over;
   * `AttemptFailed('cancelled')` when the run must not repeat its attempt; those of
   * `unknownTypes.assertKnown`.
   */
  async function claimNextAttempt(
    { jobId, runId }: JobRunRef,
    lane: Lane,
  ): Promise<Job | undefined> {
    const claimOne = async () => {
      const [claimed] = await claim([jobId], lane, { runId, needsSlot: needsSlot(lane) });
      if (claimed) return claimed;
      await requireNotCancelled({ jobId, runId });
      await leaveUnknownType({ jobId, runId }, lane);
      return claimed;
    };
    const job = needsSlot(lane) ? await jobSlots.claim(jobId, claimOne) : await claimOne();
    if (job) return job;
    const leftJob = lane === 'inline' && (await takeAfterLease(jobId)) && (await claimOne());
    if (leftJob) return leftJob;
    const current = await Job.query(db).findById(jobId);
    const isOwnRun =
      current?.status === 'running' && (current.runId === runId || current.runId === null);
    if (!isOwnRun) {
      if (await takeOver({ jobId, runId })) throw TAKEN_OVER;
      return undefined;
    }
    if (lane === 'inline' && countedAttempts(current) < current.retryPolicy.maxAttempts)
      throw new AttemptFailed('claim_lost', 0);
    throw new AttemptFailed('worker_lost', null);
  }

  /** Error: `AttemptFailed('cancelled')` for a job of this run, or of none, whose cancellation was requested. */
  async function requireNotCancelled({ jobId, runId }: JobRunRef): Promise<void> {
    const job = await Job.query(db)
      .findById(jobId)
      .select('status', 'run_id', 'cancel_requested_at');
    const isOwn = job?.runId === runId || job?.runId === null;
    if (job?.status === 'running' && isOwn && job.cancelRequestedAt)
      throw new AttemptFailed('cancelled', null);
  }

  /**
   * Leaves a job whose type this process does not know to another worker. The workflow of a short job
   * continues as a new run there, which must be able to claim the job.
   */
  async function leaveUnknownType(ref: JobRunRef, lane: Lane): Promise<void> {
    try {
      await unknownTypes.assertKnown(ref);
    } catch (error) {
      if (lane === 'inline' && error instanceof TypeNotKnownHere) await takeFromRun(db, ref);
      throw error;
    }
  }

  /**
   * Takes a job whose process has left its attempt; true if it can be claimed now. If its cancellation
   * was requested, the job ends. Error: `AttemptFailed('leased')` while the process has the attempt.
   */
  async function takeAfterLease(jobId: string): Promise<boolean> {
    const [leased] = await findLeasedAttempts(db, [jobId]);
    if (!leased) return false;
    const { runId, leftMs } = leased;
    if (leftMs > 0) throw new AttemptFailed('leased', leftMs + LEASE_CHECK_MS);
    if (await takeFromRun(db, { jobId, runId })) return true;
    await endIfCancelled({ jobId, runId });
    return false;
  }

  /** Error: `AttemptFailed('claim_lost')` when PostgreSQL has crashed and forgotten the claim. */
  async function requireClaim(jobId: string): Promise<void> {
    const current = await Job.query(db).findById(jobId).select('status');
    if (current?.status === 'queued') throw new AttemptFailed('claim_lost', 0);
  }

  /** Records an attempt that failed, or that its worker or a cancellation interrupted. */
  async function recordError(
    job: Job,
    { lane }: JobType,
    runLog: RunLog,
    error: unknown,
    signal: AbortSignal,
  ): Promise<never> {
    await runLog.stopFlushing();
    if (!signal.aborted)
      return lifecycle.failAttempt(job, lane, runLog, toJobFailure(error, log, job));
    runLog.logSystem('warn', interruptionLine(`Attempt ${job.attempts}`, signal.reason));
    await lifecycle.recordFailedAttempt(job, 'inline', runLog.drain(), {
      error: INTERRUPTED,
      retryInMs: 0,
      ...(signal.reason instanceof WorkerStopping && interruption(job)),
    });
    throw signal.reason;
  }

  const recordSuccess: RecordSuccess = (job, pendingLog, result) =>
    lifecycle.finish(job, pendingLog, { status: 'succeeded', result, guard: attemptGuard(job) });

  /** Makes a claimed attempt, in the trace that the job was created in. Errors: those of `runAttempt`. */
  const makeAttempt = (
    job: Job,
    lane: Lane,
    signal: AbortSignal,
    record = recordSuccess,
  ): Promise<void> =>
    inSpanOf(job.trace, `attempt ${job.type}`, attemptSpan(job), () =>
      attemptJob(job, lane, signal, record),
    );

  async function attemptJob(
    job: Job,
    lane: Lane,
    signal: AbortSignal,
    record: RecordSuccess,
  ): Promise<void> {
    await using runLog = createRunLog({ writeUnaudited, log, job });
    // Others are not claimed.
    const type = assertDefined(jobTypes.find(job.type), `the job type ${job.type}`);
    let result: string;
    try {
      result = await runJobType(job, type, runLog, signal);
    } catch (error) {
      return await recordError(job, type, runLog, error, signal);
    }
    await runLog.stopFlushing();
    runLog.logSystem('info', `Succeeded in attempt ${job.attempts}`);
    const pendingLog = runLog.drain();
    // The work is done: a short outage of the database must not make another attempt do it again.
    if (await retryWrite(() => record(job, pendingLog, result), type.lane)) return;
    if (lane === 'inline') await requireClaim(job.id);
  }

  /**
   * Ends a job whose workflow has ended without recording an outcome. It is cancelled also if it has failed
   * with `cancelled` after its cancellation was requested. Returns false, and changes
   * nothing, when the job has finished or belongs to another run. `runId` is null for a job that
   * no run has claimed. `message` says more than the code.
   */
  async function finalizeAbandoned(
    { jobId, runId }: { jobId: string; runId: string | null },
    status: 'failed' | 'cancelled',
    code: string,
    { cancelsRun = false, message }: { cancelsRun?: boolean; message?: string } = {},
  ): Promise<boolean> {
    const job = await Job.query(db).findById(jobId);
    if (!job || isFinal(job.status) || (job.runId !== null && job.runId !== runId)) return false;
    await using runLog = createRunLog({ writeUnaudited, log, job });
    const guard = { statuses: ['queued', 'running'] };
    // An attempt can learn of a cancellation before Temporal does: its workflow has failed then.
    if (status === 'cancelled' || (code === 'cancelled' && job.cancelRequestedAt)) {
      runLog.logSystem('warn', 'Cancelled');
      return await lifecycle.finish(job, runLog.drain(), { status: 'cancelled', guard });
    }
    const error = errorFor(job, jobTypes.find(job.type), code, message);
    runLog.logSystem('error', `Failed: ${error.code}`);
    const ended = { status: 'failed', guard, error, cancelsRun } as const;
    return await lifecycle.finish(job, runLog.drain(), ended);
  }

  /** Ends a job that could not be taken from its run, if that was because it is to be cancelled. */
  async function endIfCancelled(ref: JobRunRef): Promise<void> {
    if (await isCancelRequested(db, ref.jobId))
      await finalizeAbandoned(ref, 'cancelled', 'cancelled');
  }

  /** Makes a claimed attempt that may take long. Its record can end it before Temporal does. */
  async function makeWatchedAttempt(job: Job, lane: Lane, signal: AbortSignal): Promise<void> {
    using watched = attemptWatch.watch(job);
    try {
      await makeAttempt(job, lane, AbortSignal.any([signal, watched.signal]));
    } catch (error) {
      if (error instanceof AttemptSuperseded) return;
      // Temporal cannot say yet that the job is to be cancelled, and so not end it either.
      if (watched.signal.aborted && error === watched.signal.reason)
        await endIfCancelled({ jobId: job.id, runId: assertDefined(job.runId, 'job.runId') });
      throw error;
    }
  }

  return {
    /**
     * Makes one attempt of a job. Resolves when the job has finished or this run has nothing to do.
     * Errors: `AttemptFailed`; the reason of `signal` when it ended the attempt; database errors.
     */
    async runAttempt(ref: JobRunRef, lane: Lane, signal: AbortSignal): Promise<void> {
      const waitMs = (await admissionChecks[lane]?.(ref.jobId)) ?? null;
      if (waitMs !== null) throw new AttemptFailed('no_slot', waitMs);
      signal.throwIfAborted();
      const job = await claimNextAttempt(ref, lane);
      if (!job) return;
      if (lane !== 'inline') return makeWatchedAttempt(job, lane, signal);
      try {
        await makeAttempt(job, lane, signal);
      } catch (error) {
        // The workflow of a short job continues as a new run, which must be able to claim the job.
        if (signal.reason instanceof WorkerStopping) await takeFromRun(db, ref);
        throw error;
      }
    },

    /**
     * Claims attempts of short jobs for a run that they share, which then makes them. They belong to
     * this process for `leaseMs`, if passed, and to the run afterwards.
     */
    claimShared: (
      run: SharedRunRef,
      jobIds: readonly string[],
      leaseMs: number | null = null,
    ): Promise<Job[]> => claim(jobIds, 'inline', { ...run, needsSlot: false, leaseMs }),

    makeAttempt,

    finalizeAbandoned,

    endIfCancelled,

    takeOver,
  };
}
