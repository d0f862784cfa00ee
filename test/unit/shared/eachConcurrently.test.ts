import { expect, test } from '@jest/globals';
import { eachConcurrently } from '../../../platform/eachConcurrently.ts';

/** Tasks that end when the test says so, by their item. */
function heldTasks() {
  const held = new Map<number, PromiseWithResolvers<undefined>>();
  return {
    started: () => [...held.keys()],
    end: (item: number) => held.get(item)?.resolve(undefined),
    fail: (item: number) => held.get(item)?.reject(new Error(`task ${item}`)),
    task: async (item: number): Promise<void> => {
      const end = Promise.withResolvers<undefined>();
      held.set(item, end);
      await end.promise;
    },
  };
}

const tick = () => new Promise(setImmediate);

test('the next item starts when one ends, and no more than the limit run', async () => {
  const { started, end, task } = heldTasks();
  const all = eachConcurrently([1, 2, 3].values(), 2, task, () => true);
  expect(started()).toEqual([1, 2]);
  end(2);
  await tick();
  expect(started()).toEqual([1, 2, 3]);
  for (const item of [1, 3]) end(item);
  await all;
});

test('what was not started is left when it may not continue', async () => {
  const { started, end, task } = heldTasks();
  const items = [1, 2, 3].values();
  let mayContinue = true;
  const all = eachConcurrently(items, 1, task, () => mayContinue);
  mayContinue = false;
  end(1);
  await all;
  expect(started()).toEqual([1]);
  expect([...items]).toEqual([2, 3]);
});

test('an error is thrown when all that run have ended', async () => {
  const { end, fail, task } = heldTasks();
  let hasEnded = false;
  const all = eachConcurrently([1, 2].values(), 2, task, () => true).finally(
    () => (hasEnded = true),
  );
  void all.catch(() => undefined);
  fail(1);
  await tick();
  expect(hasEnded).toBe(false);
  end(2);
  await expect(all).rejects.toThrow('task 1');
});
