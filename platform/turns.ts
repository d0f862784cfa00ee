import { setImmediate } from 'node:timers/promises';

/** How long a computation keeps other work of the process waiting, in milliseconds. */
const TURN_MS = 2;

/** Lets other work of the process run when enough time has passed. Error: the reason of the signal. */
export type Pause = () => Promise<void>;

/**
 * The turn that was given last. Computations of a process take turns one after another, and
 * between two turns everything else that is ready runs, however many computations there are.
 */
let lastTurn: Promise<void> = Promise.resolve();

/** For a long computation: to be called often between its parts. */
export function createPause(signal?: AbortSignal): Pause {
  let turnStartedAt = performance.now();
  return async () => {
    if (performance.now() - turnStartedAt < TURN_MS) return;
    lastTurn = lastTurn.then(() => setImmediate());
    await lastTurn;
    signal?.throwIfAborted();
    turnStartedAt = performance.now();
  };
}
