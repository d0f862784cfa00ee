import { AppError } from '../domain/shared/errors.ts';

type QueueLimits = {
  maxRunning: number;
  maxQueued: number;
  /** What is said when the queue is full. */
  busy: string;
};

const RETRY_AFTER_SECONDS = 2;

/**
 * Runs at most `maxRunning` pieces of work concurrently; `maxQueued` more wait, first come, first
 * served.
 */
export function createBoundedQueue({ maxRunning, maxQueued, busy }: QueueLimits) {
  let running = 0;
  const waiting: (() => void)[] = [];

  return {
    /** Error: `too_many_requests` if the queue is full; those of `work`. */
    async run<T>(work: () => Promise<T>): Promise<T> {
      if (running >= maxRunning) {
        if (waiting.length >= maxQueued)
          throw new AppError('too_many_requests', busy, { retryAfterSeconds: RETRY_AFTER_SECONDS });
        await new Promise<void>((resolve) => waiting.push(resolve));
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
