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
