import { AppError } from '../domain/shared/errors.ts';
import { createWaitQueue } from './waitQueue.ts';

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
  const queue = createWaitQueue<symbol>();
  const refusal = () =>
    new AppError('too_many_requests', busy, { retryAfterSeconds: RETRY_AFTER_SECONDS });

  return {
    /** Error: `too_many_requests` if the queue is full, or the wait too long; those of `work`. */
    async run<T>(work: () => Promise<T>): Promise<T> {
      if (running >= maxRunning) {
        if (queue.size() >= maxQueued) throw refusal();
        await queue.wait(Symbol('work'), { maxMs: maxWaitMs, refusal });
      } else {
        running += 1;
      }
      try {
        return await work();
      } finally {
        const [next] = queue.entries();
        if (next) queue.grant(next, undefined);
        else running -= 1;
      }
    },
  };
}
