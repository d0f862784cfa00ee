import { JobFailure } from '../../domain/jobs/jobType.ts';

/** Steps that read or write all records: each uses a connection of its own and one core. */
const MAX_RUNNING = 2;
const MAX_WAITING = 20;

/**
 * Limits how many heavy steps run concurrently in this process. Further steps wait in order, until
 * their signal aborts. Error: `busy` when too many wait.
 */
export function createConcurrencyLimit() {
  let running = 0;
  const waiting: (() => void)[] = [];

  async function acquire(signal: AbortSignal): Promise<void> {
    if (running < MAX_RUNNING) {
      running += 1;
      return;
    }
    if (waiting.length >= MAX_WAITING)
      throw new JobFailure('busy', 'Too many backups and restores are waiting in this process', {
        retryAfterMs: 10_000,
      });
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    const grant = () => resolve(undefined);
    waiting.push(grant);
    const cancelWaiting = () => {
      const at = waiting.indexOf(grant);
      // A step that was granted its slot in the same moment releases it itself.
      if (at === -1) return;
      waiting.splice(at, 1);
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', cancelWaiting, { once: true });
    await promise.finally(() => signal.removeEventListener('abort', cancelWaiting));
  }

  return async function runLimited<T>(signal: AbortSignal, step: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    await acquire(signal);
    try {
      return await step();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else running -= 1;
    }
  };
}

export type ConcurrencyLimit = ReturnType<typeof createConcurrencyLimit>;
