import { Context } from '@temporalio/activity';
import {
  ApplicationFailure,
  ApplicationFailureCategory,
  CancelledFailure,
} from '@temporalio/common';
import type { Lane, SteppedRun } from '../domain/jobType.ts';
import type { Log } from '../platform/log.ts';
import { keepBeating, unavailable, withoutData } from './withoutData.ts';
import { AttemptFailed, type JobRuns } from '../services/jobRuns.ts';
import type { JobSteps } from '../services/jobSteps.ts';

export type JobActivities = ReturnType<typeof createJobActivities>;

/** An attempt cut short by a worker that stops is taken up by another one soon. */
const TAKE_UP_MS = 200;

export function createJobActivities({
  runs,
  steps,
  log,
}: {
  runs: JobRuns;
  steps: JobSteps;
  log: Log;
}) {
  return {
    /** Which workflow does a job that is done in steps; null when there is nothing to do. */
    async beginJob(jobId: string): Promise<SteppedRun | null> {
      const context = Context.current();
      try {
        return await steps.begin({ jobId, runId: currentRunId() });
      } catch (error) {
        throw toFailure(error, context, () =>
          log.warn({ err: error, jobId }, 'a job could not be begun'),
        );
      }
    },

    /** Ends a job whose steps are done. */
    endJob: (jobId: string): Promise<void> =>
      withoutData(log, () => steps.end({ jobId, runId: currentRunId() })),

    /** Makes one attempt. The failure that Temporal sees carries a code, never data of the job. */
    async attemptJob(jobId: string, lane: Lane): Promise<void> {
      const context = Context.current();
      const stop = keepBeating(context);
      try {
        await runs.attempt({ jobId, runId: currentRunId() }, lane, context.cancellationSignal);
      } catch (error) {
        throw toFailure(error, context, () =>
          log.warn({ err: error, jobId }, 'an attempt could not be recorded'),
        );
      } finally {
        stop();
      }
    },

    async settleJob(jobId: string, status: 'failed' | 'cancelled', code: string): Promise<void> {
      await withoutData(log, () => runs.settle({ jobId, runId: currentRunId() }, status, code));
    },
  };
}

function currentRunId(): string {
  const { workflowExecution } = Context.current().info;
  if (!workflowExecution) throw new Error('This activity runs inside a workflow only');
  return workflowExecution.runId;
}

export function toFailure(error: unknown, context: Context, tell: () => void): unknown {
  if (error instanceof AttemptFailed) {
    return ApplicationFailure.create({
      type: error.code,
      message: `The attempt failed with ${error.code}`,
      nonRetryable: error.retryInMs === null,
      ...(error.retryInMs !== null && { nextRetryDelay: error.retryInMs }),
      category: ApplicationFailureCategory.BENIGN,
    });
  }
  if (context.cancellationDetails?.workerShutdown) {
    return ApplicationFailure.create({
      type: 'interrupted',
      message: 'The worker stopped',
      nextRetryDelay: TAKE_UP_MS,
    });
  }
  if (error instanceof CancelledFailure) return error;
  // Messages of a database driver may quote data: they stay in the worker's log.
  tell();
  return unavailable();
}
