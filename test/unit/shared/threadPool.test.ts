import { afterEach, expect, test } from '@jest/globals';
import {
  createThreadPool,
  ThreadLimitExceeded,
  type ThreadPool,
} from '../../../platform/threadPool.ts';

const pools: ThreadPool<string, string>[] = [];
afterEach(async () => void (await Promise.all(pools.splice(0).map((pool) => pool.close()))));

function startPool({ limitMs = 60_000, maxQueued = 10 } = {}): ThreadPool<string, string> {
  const pool = createThreadPool<string, string>({
    module: new URL('../../support/threads/busy.ts', import.meta.url),
    maxThreads: 1,
    maxQueued,
    limitMs,
    memoryMb: 32,
    busy: 'Too many tasks.',
  });
  pools.push(pool);
  return pool;
}

test('a task that never ends is ended, and the next one gets another thread', async () => {
  const pool = startPool({ limitMs: 500 });
  await expect(pool.run('spin')).rejects.toThrow(ThreadLimitExceeded);
  // Starting a thread on a busy machine may take longer than the limit of this test.
  for (;;) {
    const done = await pool.run('done').catch((error: unknown) => error);
    if (!(done instanceof ThreadLimitExceeded)) {
      expect(done).toBe('done');
      return;
    }
  }
});

test('a task that takes all memory ends its thread, not the process', async () => {
  const pool = startPool();
  await expect(pool.run('allocate')).rejects.toThrow(ThreadLimitExceeded);
  expect(await pool.run('done')).toBe('done');
});

test('this thread keeps working while a task is busy, and the queue is bounded', async () => {
  const pool = startPool({ maxQueued: 1 });
  const busy = pool.run('spin').catch((error: unknown) => error);
  const waiting = pool.run('done').catch((error: unknown) => error);
  await expect(pool.run('refused')).rejects.toMatchObject({
    code: 'too_many_requests',
    extra: { retryAfterSeconds: 2 },
  });
  await pool.close();
  expect(await busy).toBeInstanceOf(Error);
  expect(await waiting).toBeInstanceOf(ThreadLimitExceeded);
});

test('the error of a task is its own', async () => {
  await expect(startPool().run('fail')).rejects.toThrow('the task failed');
});
