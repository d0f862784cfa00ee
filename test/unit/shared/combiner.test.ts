import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeEach, expect, test } from '@jest/globals';
import { createCombiner } from '../../../platform/combiner.ts';

const owner = {};
/** What was made: `a` alone, `b+c` together. */
let made: string[];
let finish: (() => void)[];
beforeEach(() => {
  made = [];
  finish = [];
});

/** Resolves when the test lets the oldest call in progress end. */
const inProgress = (): Promise<void> => new Promise((resolve) => finish.push(resolve));

/** Lets the oldest call end, and what follows from it happen. */
async function finishOne(): Promise<void> {
  finish.shift()?.();
  await nextTurn();
}

function combiner(options: Partial<Parameters<typeof createCombiner<string, string>>[0]> = {}) {
  const call = createCombiner<string, string>({
    maxTogether: 3,
    maxWaiting: 10,
    maxWaitMs: 60_000,
    async together(items) {
      made.push(items.join('+'));
      await inProgress();
      return items.map((item) => (item.startsWith('bad') ? null : `${item} together`));
    },
    ...options,
  });
  return (item: string, key = 'key', by: object = owner) =>
    call(by, key, item, async () => {
      made.push(item);
      await inProgress();
      return `${item} alone`;
    });
}

test('calls that arrive during another are made together, in their order', async () => {
  const call = combiner();
  const results = ['a', 'b', 'c', 'd', 'e'].map((item) => call(item));
  expect(made).toEqual(['a']);
  await finishOne();
  expect(made).toEqual(['a', 'b+c+d']);
  await finishOne();
  // One that is left is made alone; what arrives during it waits again.
  expect(made).toEqual(['a', 'b+c+d', 'e']);
  results.push(call('f'), call('g'));
  await finishOne();
  expect(made.at(-1)).toBe('f+g');
  await finishOne();
  expect(await Promise.all(results)).toEqual([
    ...['a alone', 'b together', 'c together', 'd together', 'e alone'],
    ...['f together', 'g together'],
  ]);
  // Nothing is in progress any more.
  void call('h');
  expect(made.at(-1)).toBe('h');
});

test('a call that cannot be made together is made alone; other keys and owners do not wait', async () => {
  const call = combiner();
  const results = ['a', 'bad1', 'b', 'bad2'].map((item) => call(item));
  void call('other', 'other key');
  void call('x', 'key', {});
  expect(made).toEqual(['a', 'other', 'x']);
  await finishOne();
  expect(made.at(-1)).toBe('bad1+b+bad2');
  finish.pop()?.();
  await nextTurn();
  expect(made.slice(-2)).toEqual(['bad1', 'bad2']);
  for (const end of finish) end();
  expect(await Promise.all(results)).toEqual(['a alone', 'bad1 alone', 'b together', 'bad2 alone']);
});

test('an error of one ends that one; an error of a group ends the group; the next go on', async () => {
  const call = combiner({ together: () => Promise.reject(new Error('lost')) });
  const failing = createCombiner<string, string>({
    ...{ maxTogether: 3, maxWaiting: 10, maxWaitMs: 60_000 },
    together: (items) => Promise.resolve(items.map((item) => `${item} together`)),
  });
  const refused = failing(owner, 'key', 'a', () => Promise.reject(new Error('refused')));
  const next = ['b', 'c'].map((item) => failing(owner, 'key', item, () => Promise.resolve('')));
  await expect(refused).rejects.toThrow('refused');
  expect(await Promise.all(next)).toEqual(['b together', 'c together']);

  const first = call('a');
  const group = Promise.allSettled([call('b'), call('c'), call('d')]);
  const last = call('e');
  await finishOne();
  expect((await group).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
  await finishOne();
  expect([await first, await last]).toEqual(['a alone', 'e alone']);
});

test('few wait, and none for long', async () => {
  const call = combiner({ maxWaiting: 2, maxWaitMs: 1 });
  const results = ['a', 'b', 'c', 'd'].map((item) => call(item));
  expect(made).toEqual(['a', 'd']);
  while (made.length < 4) await nextTurn();
  expect(made).toEqual(['a', 'd', 'b', 'c']);
  for (const end of finish) end();
  expect(await Promise.all(results)).toEqual(['a alone', 'b alone', 'c alone', 'd alone']);
});

test('a group runs in the context of its first call', async () => {
  const storage = new AsyncLocalStorage<string>();
  const contexts: unknown[] = [];
  const call = combiner({
    together(items) {
      contexts.push(storage.getStore());
      return Promise.resolve(items);
    },
  });
  const results = ['a', 'b', 'c'].map((item) => storage.run(`of ${item}`, () => call(item)));
  await finishOne();
  await Promise.all(results);
  expect(contexts).toEqual(['of b']);
});
