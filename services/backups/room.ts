import { JobFailure } from '../../domain/jobType.ts';

/** Steps of one process that read or write all records at once: each has a connection of its own and a core's work. */
const AT_ONCE = 2;
const MAX_WAITING = 20;

/** Lets a few heavy steps run at a time; others wait in their order. Error: `JobFailure` where too many wait. */
export function createRoom() {
  let running = 0;
  const waiting: (() => void)[] = [];

  async function enter(signal: AbortSignal): Promise<void> {
    if (running < AT_ONCE) {
      running += 1;
      return;
    }
    if (waiting.length >= MAX_WAITING)
      throw new JobFailure('busy', 'Too many backups and restores wait here', {
        retryAfterMs: 10_000,
      });
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    const letIn = () => resolve(undefined);
    waiting.push(letIn);
    const giveUp = () => {
      const at = waiting.indexOf(letIn);
      // One that was let in meanwhile leaves by itself.
      if (at !== -1) waiting.splice(at, 1);
      if (at !== -1) reject(signal.reason as Error);
    };
    signal.addEventListener('abort', giveUp, { once: true });
    await promise.finally(() => signal.removeEventListener('abort', giveUp));
  }

  return async function inRoom<T>(signal: AbortSignal, step: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    await enter(signal);
    try {
      return await step();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else running -= 1;
    }
  };
}

export type Room = ReturnType<typeof createRoom>;
