import { expect, test } from '@jest/globals';
import { createBoundedQueue } from '../../../platform/boundedQueue.ts';

/** Work that ends when the test says so. */
function createWork() {
  const ends: (() => void)[] = [];
  let running = 0;
  let most = 0;
  return {
    run: async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise<void>((resolve) => ends.push(resolve));
      running -= 1;
    },
    endFirst: () => ends.shift()?.(),
    most: () => most,
    started: () => ends.length,
  };
}
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

test('runs as many as allowed, queues as many, refuses the rest, and goes on in order', async () => {
  const work = createWork();
  const queue = createBoundedQueue({ maxRunning: 2, maxQueued: 3, busy: 'Too much.' });
  const order: number[] = [];
  const accepted = [0, 1, 2, 3, 4].map((n) => queue.run(work.run).then(() => order.push(n)));
  await nextTurn();
  await expect(queue.run(work.run)).rejects.toMatchObject({
    code: 'too_many_requests',
    message: 'Too much.',
  });
  for (let n = 0; n < 5; n++) {
    await nextTurn();
    expect(work.started()).toBeLessThanOrEqual(2);
    work.endFirst();
  }
  await Promise.all(accepted);
  expect([order, work.most()]).toEqual([[0, 1, 2, 3, 4], 2]);
});

test('waiting has a limit, and who has left is not called', async () => {
  const work = createWork();
  const queue = createBoundedQueue({
    maxRunning: 1,
    maxQueued: 1,
    maxWaitMs: 1,
    busy: 'Too long.',
  });
  const first = queue.run(work.run);
  await nextTurn();
  await expect(queue.run(work.run)).rejects.toMatchObject({ message: 'Too long.' });
  work.endFirst();
  await first;
  expect(await queue.run(() => Promise.resolve('next'))).toBe('next');
  expect(work.started()).toBe(0);
});

test('work that fails leaves its slot to the next', async () => {
  const queue = createBoundedQueue({ maxRunning: 1, maxQueued: 1, busy: '' });
  const failed = queue.run(() => Promise.reject(new Error('failed')));
  const next = queue.run(() => Promise.resolve('next'));
  await expect(failed).rejects.toThrow('failed');
  expect(await next).toBe('next');
});
