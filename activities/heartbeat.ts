import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { JobError } from '../domain/jobs/jobs.ts';
import { MAX_LOST_ATTEMPTS } from '../domain/jobs/lostWorkers.ts';
import type { Log } from '../platform/log.ts';
import { StoreError } from '../platform/stores/store.ts';
import { sanitizedFailure, sanitizeErrors } from './sanitizeErrors.ts';

/** Heartbeats within one heartbeat timeout: a late one does not fail the activity. */
export const HEARTBEATS_PER_TIMEOUT = 4;

/**
 * Sends heartbeats until the returned function is called. Temporal then notices a lost worker
 * within the heartbeat timeout, and keeps `details` for the next attempt. Activities without a heartbeat
 * timeout send none.
 */
export function startHeartbeat(
  { info, heartbeat }: Context,
  details: () => unknown = () => undefined,
): () => void {
  const timeoutMs = info.heartbeatTimeoutMs;
  const timer = timeoutMs
    ? setInterval(() => heartbeat(details()), timeoutMs / HEARTBEATS_PER_TIMEOUT)
    : undefined;
  return () => clearInterval(timer);
}

/**
 * What Temporal keeps of an activity from one attempt to the next. `lost`: the attempts that were never recorded as ended
 * (`isRunning`): their worker was killed, or they have taken too long.
 */
export type AttemptHistory = { lost: number; isRunning: boolean };

/** How many earlier attempts of an activity that keeps its history were lost. */
export function lostBefore({ heartbeatDetails }: Context['info']): number {
  const before = (heartbeatDetails ?? {}) as Partial<AttemptHistory>;
  return (before.lost ?? 0) + (before.isRunning === true ? 1 : 0);
}

/** An activity that Temporal repeats without limit. `fail` records why the work was not done, and answers instead. */
type LimitedWork<T> = { run(): Promise<T>; fail(error: JobError): Promise<T> };

/** Why an activity is not repeated after this failure; undefined if it is. What a store has said goes into the record only. */
function finalError(failure: unknown, error: unknown): JobError | undefined {
  if (!(failure instanceof ApplicationFailure && failure.nonRetryable === true)) return undefined;
  if (error instanceof StoreError) return { code: error.code, message: error.message };
  return { code: failure.type ?? 'unexpected', message: failure.message };
}

/**
 * As `withHeartbeat`, for work that ends in its record when it cannot be done: it has ended too many of its workers, or
 * has failed with an error that is not repeated.
 */
export async function withLimitedAttempts<T>(log: Log, { run, fail }: LimitedWork<T>): Promise<T> {
  const context = Context.current();
  let history: AttemptHistory = { lost: lostBefore(context.info), isRunning: true };
  const { lost } = history;
  const record = (isRunning: boolean) => context.heartbeat((history = { lost, isRunning }));
  if (lost >= MAX_LOST_ATTEMPTS) {
    record(false);
    const error = { code: 'worker_lost', message: `${lost} workers were lost while they did this` };
    return sanitizeErrors(log, () => fail(error));
  }
  record(true);
  const stop = startHeartbeat(context, () => history);
  try {
    return await run();
  } catch (error) {
    record(false);
    const failure = sanitizedFailure(error, log);
    const final = finalError(failure, error);
    if (final === undefined) throw failure;
    return await sanitizeErrors(log, () => fail(final));
  } finally {
    stop();
  }
}

/**
 * Runs the body of a long activity with heartbeats and sanitized errors. `signal` aborts when the
 * activity is cancelled or its worker stops.
 */
export async function withHeartbeat<T>(
  log: Log,
  body: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const context = Context.current();
  const stop = startHeartbeat(context);
  try {
    return await sanitizeErrors(log, () => body(context.cancellationSignal));
  } finally {
    stop();
  }
}
