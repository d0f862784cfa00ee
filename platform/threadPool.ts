import type Tinypool from 'tinypool';
import { createBoundedQueue } from './boundedQueue.ts';

export type ThreadPool<Task, Result> = {
  /**
   * Errors: `too_many_requests` if too many tasks wait; `ThreadLimitExceeded`; what the task threw.
   */
  run(task: Task): Promise<Result>;
  /** Ends the threads. Tasks that run or wait fail. */
  close(): Promise<void>;
};

/** A task took too long or too much memory, or the pool was closed; its thread was ended. */
export class ThreadLimitExceeded extends Error {}

type PoolOptions = {
  /** Module whose default export executes one task. Tasks and results are cloned. */
  module: URL;
  maxThreads: number;
  maxQueued: number;
  /** Time limit of a task, which includes starting its thread. */
  limitMs: number;
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
    run: (task) =>
      queue.run(async () => {
        if (closed) throw new ThreadLimitExceeded('The process is stopping.');
        pool ??= start();
        const threads = await pool;
        const limit = AbortSignal.timeout(limitMs);
        try {
          return (await threads.run(task, { signal: limit })) as Result;
        } catch (error) {
          const { code } = error as { code?: unknown };
          if (limit.aborted || code === 'ERR_WORKER_OUT_OF_MEMORY')
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
