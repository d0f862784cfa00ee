import { expect, test } from '@jest/globals';
import { createWaitQueue } from '../../../platform/waitQueue.ts';

const refusal = () => new Error('too late');

test('those that wait go on when they are granted, whatever their order is', async () => {
  const queue = createWaitQueue<string, number>();
  const waits = ['a', 'b'].map((entry) => queue.wait(entry, { refusal }));
  expect(queue.entries()).toEqual(['a', 'b']);
  queue.grant('b', 2);
  expect(queue.entries()).toEqual(['a']);
  queue.grant('a', 1);
  expect(queue.size()).toBe(0);
  expect(await Promise.all(waits)).toEqual([1, 2]);
});

test('an entry leaves when its time is over, or its signal aborts', async () => {
  const queue = createWaitQueue<string>();
  await expect(queue.wait('late', { maxMs: 1, refusal })).rejects.toThrow('too late');
  const controller = new AbortController();
  const aborted = queue.wait('aborted', { signal: controller.signal, refusal });
  controller.abort();
  await expect(aborted).rejects.toMatchObject({ name: 'AbortError' });
  expect(queue.size()).toBe(0);
});

test('an entry that is granted stays so, though it was to leave in the same moment', async () => {
  const queue = createWaitQueue<string, string>();
  const controller = new AbortController();
  const waits = ['a', 'b'].map((entry) =>
    queue.wait(entry, { signal: controller.signal, refusal }),
  );
  queue.grant('a', 'granted');
  controller.abort();
  const [a, b] = await Promise.allSettled(waits);
  expect(a).toEqual({ status: 'fulfilled', value: 'granted' });
  expect(b).toMatchObject({ status: 'rejected' });
});
