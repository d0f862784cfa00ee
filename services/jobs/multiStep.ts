import type { WriteUnaudited } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import {
  attemptGuard,
  claimMultiStep,
  writeJobChange,
  type JobValues,
} from '../../db/jobs/jobs.ts';
import { Job } from '../../db/models/Job.ts';
import type { LogLevel } from '../../domain/jobs/jobs.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { isBusyError } from '../../domain/shared/busy.ts';
import { isOutage, isOutOfResources } from '../../domain/shared/outage.ts';
import { JobFailure, type ChildWorkflowSpec, type StepContext } from '../../domain/jobs/jobType.ts';
import { MAX_LOST_ATTEMPTS } from '../../domain/jobs/lostWorkers.ts';
import type { Ids } from '../../platform/ids.ts';
import type { Log } from '../../platform/log.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import type { JobAttempts } from './attempts.ts';
import { AttemptSuperseded, type AttemptWatch } from './attemptWatch.ts';
import { claimReport } from './claimReport.ts';
import { logChange } from './logChange.ts';
import {
  AttemptFailed,
  interruption,
  interruptionLine,
  toJobFailure,
  WorkerStopping,
  type JobLifecycle,
  type JobRunRef,
} from './lifecycle.ts';
import { serializeResult } from '../shared/serializeResult.ts';
import type { JobSlots } from './slots.ts';
import { retryWrite } from './retryWrite.ts';
import { createRunLog, type RunLog } from './runLog.ts';
import { TAKEN_OVER } from './takeOver.ts';
import type { UnknownTypes } from './unknownTypes.ts';

export type MultiStepJobs = ReturnType<typeof createMultiStepJobs>;

/** What a step gets: its job, the caller it acts for, and the log and progress of the job. */
export type StepTools = StepContext & {
  signal: AbortSignal;
  log(level: LogLevel, message: string, data?: object): void;
  progress(percent: number, message?: string): void;
};

/**
 * One attempt of a step. `failures`: the earlier ones that have failed and are counted; `onCounted` gets the
 * new number when this attempt fails and is counted. An attempt that an outage ends is not counted. `lost`: the earlier
 * ones whose worker was killed. `signal` aborts with a `JobFailure` when the attempt has taken too long.
 */
export type StepAttempt = {
  jobId: string;
  failures: number;
  lost: number;
  onCounted(failures: number): void;
  signal: AbortSignal;
};

/** True when the database or this installation cannot do a step now. What a step itself uses up counts. */
const isUnavailable = (error: unknown): boolean =>
  isBusyError(error) || (isOutage(error) && !isOutOfResources(error));

type Deps = {
  db: Knex;
  ids: Ids;
  /** Called when the event of the start is committed. Must not throw. */
  onEventsCommitted(): void;
  writeUnaudited: WriteUnaudited;
  jobTypes: JobTypes;
  jobLifecycle: JobLifecycle;
  jobAttempts: Pick<JobAttempts, 'takeOver' | 'endIfCancelled'>;
  attemptWatch: Pick<AttemptWatch, 'watch'>;
  jobSlots: JobSlots;
  unknownTypes: UnknownTypes;
  log: Log;
};

/** Logs how many workers were lost during a step. Error: `worker_lost` when these are too many. */
function assertNotDeadly(lost: number, runLog: RunLog): void {
  if (lost === 0) return;
  if (lost >= MAX_LOST_ATTEMPTS)
    throw new JobFailure('worker_lost', `${lost} workers were lost during the step`, {
      retryable: false,
    });
  runLog.logSystem(
    'warn',
    `The worker was lost during the step (${lost} of at most ${MAX_LOST_ATTEMPTS} times); it is repeated`,
  );
}

/**
 * A run without a slot asks again after this long at the earliest: its workflow then waits for a timer of Temporal
 * (`localRetryThreshold`), and not in a workflow task, which would occupy its worker.
 */
const ASK_AGAIN_MS = 6_000;

/** For `catch`: lets a run that has found no slot ask again later. */
function askLater(error: unknown): never {
  if (!(error instanceof AttemptFailed) || error.code !== 'no_slot') throw error;
  const waitMs = Math.max(error.retryInMs ?? 0, ASK_AGAIN_MS * (1 + Math.random() / 4));
  throw new AttemptFailed('no_slot', Math.round(waitMs));
}

/** How long a step waits that this process cannot run now. */
const DEFAULT_BUSY_WAIT_MS = 5_000;

/**
 * Jobs of the lane `workflow`: a child workflow does the work in steps. The job record gets their
 * start, the log and progress of each step, and the result.
 */
export function createMultiStepJobs({
  db,
  ids,
  onEventsCommitted,
  writeUnaudited,
  jobTypes,
  jobLifecycle: lifecycle,
  jobAttempts: { takeOver, endIfCancelled },
  attemptWatch,
  jobSlots,
  unknownTypes,
  log,
}: Deps) {
  /** Errors: `JobFailure`; those of `unknownTypes.assertKnown`. */
  async function multiStepTypeOf(job: Job) {
    const type = jobTypes.find(job.type);
    if (type?.lane === 'workflow') return type;
    await unknownTypes.assertKnown({ jobId: job.id, runId: assertDefined(job.runId, 'job.runId') });
    throw new JobFailure('unknown_job_type', 'The type does not run in steps', {
      retryable: false,
    });
  }

  async function fail(job: Job, runLog: RunLog, error: unknown, attempt: number): Promise<never> {
    await runLog.stopFlushing();
    return lifecycle.failAttempt(job, 'workflow', runLog, toJobFailure(error, log, job), attempt);
  }

  /** Records why an attempt of a step has failed, unless that says nothing about the step. */
  async function failStep(
    job: Job,
    runLog: RunLog,
    error: unknown,
    { failures, onCounted }: StepAttempt,
  ): Promise<never> {
    if (isUnavailable(error)) throw error;
    if (error instanceof JobFailure && error.code === 'busy') {
      const waitMs = error.retryAfterMs ?? DEFAULT_BUSY_WAIT_MS;
      runLog.logSystem('warn', `Busy: ${error.message}; next attempt in ${waitMs / 1_000} s`);
      await flush(job, runLog).catch(() => undefined);
      throw new AttemptFailed('busy', waitMs);
    }
    onCounted(failures + 1);
    return fail(job, runLog, error, failures + 1 + job.interruptions);
  }

  /** Writes the log lines and the progress of a step that are not written yet. */
  async function flush(job: Job, runLog: RunLog, also: JobValues = {}): Promise<void> {
    await runLog.stopFlushing();
    const { lines, progress } = runLog.drain();
    const isEmpty = lines.length === 0 && progress.progress === undefined;
    if (isEmpty && Object.keys(also).length === 0) return;
    const write = () =>
      writeUnaudited((executor, now) => {
        const values = { ...progress, ...also, updated_at: now };
        const change = logChange({ jobId: job.id, guard: attemptGuard(job), values, lines });
        return writeJobChange(executor, change);
      });
    await retryWrite(write, 'workflow');
  }

  return {
    /**
     * Claims a job and prepares its child workflow; null when this run has nothing to do. Repeating
     * it returns the same child workflow. Errors: `AttemptFailed`, database errors.
     */
    async start({ jobId, runId }: JobRunRef): Promise<ChildWorkflowSpec | null> {
      const report = claimReport({ ids, jobTypes }, [jobId], 'workflow');
      const types = jobTypes.ownNames();
      const claim = async () => {
        const claimed = await writeUnaudited((executor, now) =>
          claimMultiStep(executor, { jobId, runId, types, now, ...report }),
        );
        if (!claimed) await unknownTypes.assertKnown({ jobId, runId });
        return claimed;
      };
      const job = await jobSlots.claim(jobId, claim).catch(askLater);
      if (!job) {
        if (await takeOver({ jobId, runId })) throw TAKEN_OVER;
        return null;
      }
      onEventsCommitted();
      await using runLog = createRunLog({ writeUnaudited, log, job });
      try {
        const type = await multiStepTypeOf(job);
        const caller = await lifecycle.callerForJob(job, type);
        const source = { kind: job.sourceKind, id: job.sourceId };
        return await type.prepare(job.payload, { jobId, caller, source });
      } catch (error) {
        if (!(error instanceof JobFailure)) throw error;
        const failure = new JobFailure(error.code, error.message, { retryable: false });
        return await fail(job, runLog, failure, 1);
      }
    },

    /**
     * Runs one step of a running job, with the current rights of the caller that the job acts for.
     * The record can end the step before Temporal does. Errors: `AttemptFailed`, the reason of `signal`, database errors.
     */
    async runStep<T>(attempt: StepAttempt, runWith: (tools: StepTools) => Promise<T>): Promise<T> {
      const { jobId } = attempt;
      const job = await Job.query(db).findById(jobId);
      if (job?.status !== 'running') throw new AttemptFailed('job_ended', null);
      using watched = attemptWatch.watch(job);
      const signal = AbortSignal.any([attempt.signal, watched.signal]);
      const type = await multiStepTypeOf(job);
      await using runLog = createRunLog({ writeUnaudited, log, job });
      try {
        assertNotDeadly(attempt.lost, runLog);
        const caller = await lifecycle.callerForJob(job, type);
        const result = await runWith({
          jobId,
          caller,
          source: { kind: job.sourceKind, id: job.sourceId },
          payload: job.payload,
          signal,
          log: runLog.log,
          progress: runLog.progress,
        });
        await flush(job, runLog);
        return result;
      } catch (error) {
        const reason: unknown = signal.reason;
        const isTooLate = reason instanceof JobFailure;
        if (!signal.aborted || isTooLate)
          return await failStep(job, runLog, isTooLate ? reason : error, attempt);
        // The job ends or another worker repeats the step: losing these log lines is acceptable.
        const interrupted = reason instanceof WorkerStopping ? interruption(job) : {};
        if (reason instanceof WorkerStopping && reason.message)
          runLog.logSystem('warn', interruptionLine('The step', reason));
        await flush(job, runLog, interrupted).catch(() => undefined);
        if (reason instanceof AttemptSuperseded) throw new AttemptFailed('job_ended', null);
        // Temporal cannot say yet that the job is to be cancelled, and so not end it either.
        if (reason === watched.signal.reason)
          await endIfCancelled({ jobId, runId: assertDefined(job.runId, 'job.runId') });
        throw reason;
      }
    },

    /** Records the success of a job whose child workflow has completed. */
    async complete({ jobId, runId }: JobRunRef): Promise<void> {
      const job = await Job.query(db).findById(jobId);
      if (job?.status !== 'running') return;
      if (job.runId !== runId) {
        if (await takeOver({ jobId, runId })) throw TAKEN_OVER;
        return;
      }
      await using runLog = createRunLog({ writeUnaudited, log, job });
      const result = serializeResult(await (await multiStepTypeOf(job)).result(jobId));
      runLog.logSystem('info', 'Succeeded');
      runLog.progress(100);
      await runLog.stopFlushing();
      const outcome = { status: 'succeeded', result, guard: attemptGuard(job) } as const;
      await lifecycle.finish(job, runLog.drain(), outcome);
    },
  };
}
