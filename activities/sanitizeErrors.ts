import { Context } from '@temporalio/activity';
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { isBusyError } from '../domain/shared/busy.ts';
import { isOutage } from '../domain/shared/outage.ts';
import type { Log } from '../platform/log.ts';
import { StoreError } from '../platform/stores/store.ts';

/**
 * Attempts of an activity that fails unexpectedly. Such an error is a bug: retries rarely help, and
 * the workflow must be able to record the failure. What the database, the store of archives or this installation cannot
 * do now, as in an outage, is retried without limit.
 */
export const MAX_UNEXPECTED_ATTEMPTS = 5;

/**
 * Converts what an activity threw to the failure that Temporal stores. Messages of a database
 * driver may quote data, so they stay in the log of the worker; the log line names activity,
 * workflow and run. Returns failures that the activity made on purpose as they are.
 */
export function sanitizedFailure(error: unknown, log: Log): unknown {
  if (error instanceof ApplicationFailure || error instanceof CancelledFailure) return error;
  const { activityType, attempt, workflowExecution } = Context.current().info;
  const activityLog = log.child({ activity: activityType, attempt, ...workflowExecution });
  const isStoreAway = error instanceof StoreError && error.transient;
  if (isStoreAway || isOutage(error) || isBusyError(error)) {
    activityLog.warn({ err: error }, 'not possible now; the activity will be retried');
    return ApplicationFailure.create({
      type: 'unavailable',
      message: 'The database or the store of archives is unavailable or busy',
    });
  }
  activityLog.error({ err: error }, 'an activity failed unexpectedly');
  return ApplicationFailure.create({
    type: 'unexpected',
    message: 'The activity failed unexpectedly; the log of the worker has the details',
    nonRetryable: attempt >= MAX_UNEXPECTED_ATTEMPTS,
  });
}

/** Runs the body of an activity; errors become failures without data (`sanitizedFailure`). */
export async function sanitizeErrors<T>(log: Log, body: () => Promise<T>): Promise<T> {
  try {
    return await body();
  } catch (error) {
    throw sanitizedFailure(error, log);
  }
}
