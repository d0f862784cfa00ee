import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { createBatches } from '../../../platform/batches.ts';

test('questions that come in during a batch are the next batch, of a limited size', async () => {
  const batches: (readonly number[])[] = [];
  const ask = createBatches<number, number>(3, async (questions) => {
    batches.push(questions);
    await Promise.resolve();
    return (question) => question * 2;
  });
  const answers = await Promise.all([1, 2, 3, 4, 5].map(ask));
  expect(answers).toEqual([2, 4, 6, 8, 10]);
  expect(batches).toEqual([[1], [2, 3, 4], [5]]);
  expect(await ask(6)).toBe(12);
});

test('a failure is that of its batch only', async () => {
  let fails = true;
  const ask = createBatches<number, number>(10, async () => {
    await Promise.resolve();
    if (fails) throw new Error('no database');
    return (question) => question;
  });
  await expect(ask(1)).rejects.toThrow('no database');
  fails = false;
  expect(await ask(2)).toBe(2);
});

test('a batch waits for more questions, unless it is full', async () => {
  const batches: (readonly number[])[] = [];
  const answer = (questions: readonly number[]) => {
    batches.push(questions);
    return Promise.resolve((question: number) => question);
  };
  const ask = createBatches<number, number>(3, answer, () => sleep(1));
  await Promise.all([1, 2].map(ask));
  await Promise.all([3, 4, 5, 6].map(ask));
  expect(batches).toEqual([[1, 2], [3, 4, 5], [6]]);
});
