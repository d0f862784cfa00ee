import { AppError } from '../domain/shared/errors.ts';

type QueueLimits = {
  maxRunning: number;
  maxQueued: number;
  /** For how long work waits at most; without it, as long as the work before it takes. */
  maxWaitMs?: number;
  /** What is said when the queue is full. */
  busy: string;
};

const RETRY_AFTER_SECONDS = 2;

/**
 * Runs at most `maxRunning` pieces of work concurrently; `maxQueued` more wait, first come, first
 * served.
 */
export function createBoundedQueue({ maxRunning, maxQueued, maxWaitMs, busy }: QueueLimits) {
  let running = 0;
  const waiting: (() => void)[] = [];
  const refusal = () =>
    new AppError('too_many_requests', busy, { retryAfterSeconds: RETRY_AFTER_SECONDS });

  async function waitForTurn(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    const begin = () => resolve(undefined);
    const leave = () => {
      waiting.splice(waiting.indexOf(begin), 1);
      reject(refusal());
    };
    waiting.push(begin);
    const timer = maxWaitMs === undefined ? undefined : setTimeout(leave, maxWaitMs);
    await promise.finally(() => clearTimeout(timer));
  }

  return {
    /** Error: `too_many_requests` if the queue is full, or the wait too long; those of `work`. */
    async run<T>(work: () => Promise<T>): Promise<T> {
      if (running >= maxRunning) {
        if (waiting.length >= maxQueued) throw refusal();
        await waitForTurn();
      } else {
        running += 1;
      }
      try {
        return await work();
      } finally {
        const next = waiting.shift();
        if (next) next();
        else running -= 1;
      }
    },
  };
}
