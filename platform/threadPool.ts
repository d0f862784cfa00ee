import type { MessagePort } from 'node:worker_threads';
import type Tinypool from 'tinypool';
import { createBoundedQueue } from './boundedQueue.ts';

export type ThreadPool<Task, Result> = {
  /**
   * Errors: `too_many_requests` if too many tasks wait; `ThreadLimitExceeded`; what the task threw.
   */
  run(task: Task, options?: RunOptions): Promise<Result>;
  /** Ends the threads. Tasks that run or wait fail. */
  close(): Promise<void>;
};

/** What is moved to the thread with a task, and what ends its thread. */
type RunOptions = { transfer?: MessagePort[]; signal?: AbortSignal };

/** A task took too long or too much memory, or the pool was closed; its thread was ended. */
export class ThreadLimitExceeded extends Error {}

type PoolOptions = {
  /** Module whose default export executes one task. Tasks and results are cloned. */
  module: URL;
  maxThreads: number;
  maxQueued: number;
  /** Time limit of a task, which includes starting its thread; by default the caller limits it. */
  limitMs?: number;
  memoryMb: number;
  /** What is said when the queue is full. */
  busy: string;
};

/** A thread without work ends after this time. */
const IDLE_MS = 60_000;

/**
 * Executes costly work on data of strangers in threads that are ended when the work takes too long
 * or too much memory: the main thread keeps answering. Threads start on first use.
 */
export function createThreadPool<Task, Result>(options: PoolOptions): ThreadPool<Task, Result> {
  const { module, maxThreads, maxQueued, limitMs, memoryMb, busy } = options;
  const queue = createBoundedQueue({ maxRunning: maxThreads, maxQueued, busy });
  let pool: Promise<Tinypool> | undefined;
  let closed = false;

  // Loaded on first use: most processes never need a thread.
  const start = async () => {
    const { default: Pool } = await import('tinypool');
    return new Pool({
      filename: module.href,
      minThreads: 0,
      maxThreads,
      idleTimeout: IDLE_MS,
      resourceLimits: { maxOldGenerationSizeMb: memoryMb, maxYoungGenerationSizeMb: 16 },
    });
  };

  return {
    run: (task, { transfer, signal } = {}) =>
      queue.run(async () => {
        if (closed) throw new ThreadLimitExceeded('The process is stopping.');
        pool ??= start();
        const threads = await pool;
        const limit = limitMs === undefined ? undefined : AbortSignal.timeout(limitMs);
        const signals = [limit, signal].filter((each) => each !== undefined);
        try {
          const options = {
            ...(signals.length > 0 && { signal: AbortSignal.any(signals) }),
            ...(transfer && { transferList: transfer }),
          };
          return (await threads.run(task, options)) as Result;
        } catch (error) {
          signal?.throwIfAborted();
          const { code } = error as { code?: unknown };
          if (limit?.aborted === true || code === 'ERR_WORKER_OUT_OF_MEMORY')
            throw new ThreadLimitExceeded('The task exceeded its time or memory.');
          throw error;
        }
      }),

    async close() {
      closed = true;
      await (await pool)?.destroy();
    },
  };
}
