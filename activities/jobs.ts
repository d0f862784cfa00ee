import { Context } from '@temporalio/activity';
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import { assertDefined } from '../domain/shared/assert.ts';
import { OTHER_WORKER_NEEDED } from '../domain/dispatch/tasks.ts';
import { ERROR_CODE } from '../domain/jobs/jobs.ts';
import type { ChildWorkflowSpec, Lane } from '../domain/jobs/jobType.ts';
import { jobLog, type Log } from '../platform/log.ts';
import { AttemptFailed, type JobAttempts, type SharedRunRef } from '../services/jobs/attempts.ts';
import type { JobRunRef } from '../services/jobs/lifecycle.ts';
import type { ImmediateAttempts } from '../services/jobs/immediateAttempts.ts';
import type { StopSignal } from '../services/jobs/stopSignal.ts';
import type { SharedRuns } from '../services/jobs/sharedRuns.ts';
import { WorkerStopping } from '../services/jobs/lifecycle.ts';
import { TypeNotKnownHere } from '../services/jobs/unknownTypes.ts';
import type { RemoteAttempts } from '../services/runners/attempts.ts';
import type { MultiStepJobs } from '../services/jobs/multiStep.ts';
import { startHeartbeat } from './heartbeat.ts';
import { sanitizedFailure, sanitizeErrors } from './sanitizeErrors.ts';

export type JobActivities = ReturnType<typeof createJobActivities>;

/** Delay after which another worker repeats an attempt that a stopping worker interrupted. */
const RESUME_DELAY_MS = 200;

/** The activities of the job workflow. Each may run more than once. */
export function createJobActivities({
  jobAttempts,
  sharedRuns,
  immediateAttempts,
  stopSignal,
  multiStepJobs,
  remoteAttempts,
  log,
}: {
  jobAttempts: JobAttempts;
  sharedRuns: SharedRuns;
  immediateAttempts: Pick<ImmediateAttempts, 'waitFor'>;
  stopSignal: Pick<StopSignal, 'signal'>;
  multiStepJobs: MultiStepJobs;
  remoteAttempts: Pick<RemoteAttempts, 'finalize' | 'requireStopped'>;
  log: Log;
}) {
  return {
    /**
     * Claims a job of the lane `workflow`. Returns its child workflow, or null if nothing is to do.
     */
    async startMultiStepJob(jobId: string): Promise<ChildWorkflowSpec | null> {
      try {
        return await multiStepJobs.start(runRef(jobId));
      } catch (error) {
        throw otherWorkerNeeded(error) ?? toTemporalFailure(error, jobLog(log, jobId));
      }
    },

    /** Records the success of a job whose child workflow has completed. */
    async completeMultiStepJob(jobId: string): Promise<void> {
      try {
        await multiStepJobs.complete(runRef(jobId));
      } catch (error) {
        throw toTemporalFailure(error, jobLog(log, jobId));
      }
    },

    /**
     * Makes one attempt. The failure that Temporal stores has an error code and no data of the job.
     */
    async runJobAttempt(jobId: string, lane: Lane): Promise<void> {
      const context = Context.current();
      const stopHeartbeat = startHeartbeat(context);
      try {
        await jobAttempts.runAttempt(runRef(jobId), lane, attemptSignal(stopSignal.signal));
      } catch (error) {
        const elsewhere = lane === 'inline' ? otherWorkerNeeded(error) : undefined;
        throw elsewhere ?? toTemporalFailure(error, jobLog(log, jobId));
      } finally {
        stopHeartbeat();
      }
    },

    /**
     * After the activity of a runner: returns null if the job has ended, otherwise the milliseconds until
     * the next attempt.
     */
    async finalizeRemoteAttempt(jobId: string): Promise<number | null> {
      try {
        return await remoteAttempts.finalize(runRef(jobId));
      } catch (error) {
        throw toTemporalFailure(error, jobLog(log, jobId));
      }
    },

    /** Makes the first attempts of several short jobs, but for those that this process makes anyway. */
    async runFirstAttempts(jobIds: string[], timeoutMs: number): Promise<void> {
      const signal = attemptSignal(stopSignal.signal);
      try {
        const left = await immediateAttempts.waitFor(jobIds, signal);
        if (left.length === 0) return;
        await sharedRuns.makeAttempts(sharedRunRef(), { jobIds: left, timeoutMs }, signal);
      } catch (error) {
        throw toTemporalFailure(error, log);
      }
    },

    /** Records the end of jobs whose shared run has failed. */
    finalizeJobs: (jobIds: string[], status: 'failed' | 'cancelled', code: string): Promise<void> =>
      sanitizeErrors(log, () => sharedRuns.finalize(sharedRunRef(), jobIds, status, code)),

    /** Records the end of a job that no attempt has recorded. A cancelled one ends after its attempt. */
    async finalizeJob(jobId: string, status: 'failed' | 'cancelled', code: string): Promise<void> {
      const ref = runRef(jobId);
      try {
        if (status === 'cancelled' || code === 'cancelled')
          await remoteAttempts.requireStopped(ref);
        await jobAttempts.finalizeAbandoned(ref, status, errorCode(code));
      } catch (error) {
        throw toTemporalFailure(error, jobLog(log, jobId));
      }
    },
  };
}

const CODE = new RegExp(ERROR_CODE);

/** An activity of a runner can fail with any text as its type. */
const errorCode = (code: string): string => (CODE.test(code) ? code : 'unexpected');

const currentRun = () =>
  assertDefined(Context.current().info.workflowExecution, 'workflow of the activity');

const runRef = (jobId: string): JobRunRef => ({ jobId, runId: currentRun().runId });

function sharedRunRef(): SharedRunRef {
  const { runId, workflowId } = currentRun();
  return { runId, workflowId };
}

/** Why an attempt ends although its job continues, if it does. */
function interruptionOf({ cancellationDetails }: Context): WorkerStopping | undefined {
  if (cancellationDetails?.workerShutdown) return new WorkerStopping();
  if (cancellationDetails?.paused) return new WorkerStopping('its activity was paused in Temporal');
  if (cancellationDetails?.reset) return new WorkerStopping('its activity was reset in Temporal');
  return undefined;
}

/**
 * Aborts with the activity; with `WorkerStopping` if that is because its worker stops in order, or an operator has paused or
 * reset the activity.
 */
export function attemptSignal(stopping?: AbortSignal): AbortSignal {
  const context = Context.current();
  const { cancellationSignal } = context;
  const controller = new AbortController();
  const abort = () => controller.abort(interruptionOf(context) ?? cancellationSignal.reason);
  if (cancellationSignal.aborted) abort();
  else cancellationSignal.addEventListener('abort', abort, { once: true });
  return stopping ? AbortSignal.any([controller.signal, stopping]) : controller.signal;
}

/** How often a job asks for a slot in one run of its workflow: each time adds about six events to the history. */
const MAX_ASKED_IN_RUN = 50;

/** Milliseconds after which another worker or run is to repeat a local activity; undefined for other errors. */
function otherWorkerIn(error: unknown): number | undefined {
  if (error instanceof TypeNotKnownHere) return error.retryInMs;
  if (error instanceof AttemptFailed && error.code === 'no_slot')
    return Context.current().info.attempt < MAX_ASKED_IN_RUN
      ? undefined
      : (error.retryInMs ?? undefined);
  return error instanceof WorkerStopping ? 0 : undefined;
}

/** A local activity is repeated by the same worker. If another one is needed, its workflow must know. */
function otherWorkerNeeded(error: unknown): ApplicationFailure | undefined {
  const waitMs = otherWorkerIn(error);
  if (waitMs === undefined) return undefined;
  return ApplicationFailure.create({
    type: OTHER_WORKER_NEEDED,
    message: 'Another worker must go on',
    nonRetryable: true,
    details: [waitMs],
    category: ApplicationFailureCategory.BENIGN,
  });
}

/**
 * Converts what an attempt or a step threw to the failure that Temporal stores: it carries the
 * error code, whether there is another attempt, and when.
 */
export function toTemporalFailure(error: unknown, log: Log): unknown {
  if (error instanceof AttemptFailed) {
    return ApplicationFailure.create({
      type: error.code,
      message: `The attempt failed with ${error.code}`,
      nonRetryable: error.retryInMs === null,
      ...(error.retryInMs !== null && { nextRetryDelay: error.retryInMs }),
      category: ApplicationFailureCategory.BENIGN,
    });
  }
  if (error instanceof WorkerStopping || Context.current().cancellationDetails?.workerShutdown) {
    return ApplicationFailure.create({
      type: 'interrupted',
      message: 'The attempt was interrupted',
      nextRetryDelay: RESUME_DELAY_MS,
    });
  }
  return sanitizedFailure(error, log);
}
