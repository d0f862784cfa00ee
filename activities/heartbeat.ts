import { Context } from '@temporalio/activity';
import type { Log } from '../platform/log.ts';
import { sanitizeErrors } from './sanitizeErrors.ts';

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

/** As `withHeartbeat`, for a body that must end after too many attempts that were `lost`. */
export async function withHistory<T>(log: Log, body: (lost: number) => Promise<T>): Promise<T> {
  const context = Context.current();
  let history: AttemptHistory = { lost: lostBefore(context.info), isRunning: true };
  context.heartbeat(history);
  const stop = startHeartbeat(context, () => history);
  try {
    return await sanitizeErrors(log, () => body(history.lost));
  } catch (error) {
    context.heartbeat((history = { ...history, isRunning: false }));
    throw error;
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
