import { Context } from '@temporalio/activity';
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import { assertDefined } from '../domain/shared/assert.ts';
import type { ChildWorkflowSpec, Lane } from '../domain/jobs/jobType.ts';
import { jobLog, type Log } from '../platform/log.ts';
import {
  AttemptFailed,
  type JobAttempts,
  type JobRunRef,
  type SharedRunRef,
} from '../services/jobs/attempts.ts';
import type { ImmediateAttempts } from '../services/jobs/immediateAttempts.ts';
import type { SharedRuns } from '../services/jobs/sharedRuns.ts';
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
  multiStepJobs,
  remoteAttempts,
  log,
}: {
  jobAttempts: JobAttempts;
  sharedRuns: SharedRuns;
  immediateAttempts: Pick<ImmediateAttempts, 'waitFor'>;
  multiStepJobs: MultiStepJobs;
  remoteAttempts: Pick<RemoteAttempts, 'finalize'>;
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
        throw toTemporalFailure(error, jobLog(log, jobId));
      }
    },

    /** Records the success of a job whose child workflow has completed. */
    completeMultiStepJob: (jobId: string): Promise<void> =>
      sanitizeErrors(jobLog(log, jobId), () => multiStepJobs.complete(runRef(jobId))),

    /**
     * Makes one attempt. The failure that Temporal stores has an error code and no data of the job.
     */
    async runJobAttempt(jobId: string, lane: Lane): Promise<void> {
      const context = Context.current();
      const stopHeartbeat = startHeartbeat(context);
      try {
        await jobAttempts.runAttempt(runRef(jobId), lane, context.cancellationSignal);
      } catch (error) {
        throw toTemporalFailure(error, jobLog(log, jobId));
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
      const { cancellationSignal } = Context.current();
      try {
        const left = await immediateAttempts.waitFor(jobIds, cancellationSignal);
        if (left.length === 0) return;
        await sharedRuns.makeAttempts(
          sharedRunRef(),
          { jobIds: left, timeoutMs },
          cancellationSignal,
        );
      } catch (error) {
        throw toTemporalFailure(error, log);
      }
    },

    /** Records the end of jobs whose shared run has failed. */
    finalizeJobs: (jobIds: string[], status: 'failed' | 'cancelled', code: string): Promise<void> =>
      sanitizeErrors(log, () => sharedRuns.finalize(sharedRunRef(), jobIds, status, code)),

    /** Records the end of a job that no attempt has recorded. */
    finalizeJob: (jobId: string, status: 'failed' | 'cancelled', code: string): Promise<void> =>
      sanitizeErrors(jobLog(log, jobId), async () => {
        await jobAttempts.finalizeAbandoned(runRef(jobId), status, errorCode(code));
      }),
  };
}

/** An activity of a runner can fail with any text as its type. */
const errorCode = (code: string): string => (/^[a-z0-9_]{1,64}$/.test(code) ? code : 'unexpected');

const currentRun = () =>
  assertDefined(Context.current().info.workflowExecution, 'workflow of the activity');

const runRef = (jobId: string): JobRunRef => ({ jobId, runId: currentRun().runId });

function sharedRunRef(): SharedRunRef {
  const { runId, workflowId } = currentRun();
  return { runId, workflowId };
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
  if (Context.current().cancellationDetails?.workerShutdown) {
    return ApplicationFailure.create({
      type: 'interrupted',
      message: 'The worker stopped',
      nextRetryDelay: RESUME_DELAY_MS,
    });
  }
  return sanitizedFailure(error, log);
}
