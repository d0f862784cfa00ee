import { setImmediate } from 'node:timers/promises';

/** How long a computation keeps other work of the process waiting, in milliseconds. */
const TURN_MS = 15;

/** Lets other work of the process run when enough time has passed. Error: the reason of the signal. */
export type Pause = () => Promise<void>;

/** For a long computation: to be called often between its parts. */
export function createPause(signal?: AbortSignal): Pause {
  let turnStartedAt = performance.now();
  return async () => {
    if (performance.now() - turnStartedAt < TURN_MS) return;
    await setImmediate();
    signal?.throwIfAborted();
    turnStartedAt = performance.now();
  };
}
