import { Context } from '@temporalio/activity';
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import type { Log } from '../platform/log.ts';

/** The failure of a step that may be repeated; the words of the driver stay in the worker's log. */
export const unavailable = (): ApplicationFailure =>
  ApplicationFailure.create({ type: 'unavailable', message: 'The step could not be recorded' });

/** Runs a step and lets no message of a database driver, which may quote data, reach Temporal. */
export async function withoutData<T>(log: Log, step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    if (error instanceof ApplicationFailure || error instanceof CancelledFailure) throw error;
    log.warn({ err: error }, 'a step of a workflow could not be recorded');
    throw unavailable();
  }
}

/** A lost worker is noticed after the heartbeat limit; beat well within it. */
const BEATS_PER_LIMIT = 4;

/** Beats for as long as an activity runs; returns how to stop that. One without a limit is not listened to. */
export function keepBeating({ info, heartbeat }: Context): () => void {
  const limitMs = info.heartbeatTimeoutMs;
  const beat = limitMs ? setInterval(() => heartbeat(), limitMs / BEATS_PER_LIMIT) : undefined;
  return () => clearInterval(beat);
}

/** The same for a step that may take long: it is told to stop, and a worker that is lost with it is noticed. */
export async function beating<T>(log: Log, step: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const context = Context.current();
  const stop = keepBeating(context);
  try {
    return await withoutData(log, () => step(context.cancellationSignal));
  } finally {
    stop();
  }
}
