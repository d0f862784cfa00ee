import { expect, test } from '@jest/globals';
import { askWithin } from '../../../platform/metrics/askWithin.ts';

test('a scrape waits for the database only so long, and asks one question at a time', async () => {
  let asked = 0;
  const { promise, resolve: answer } = Promise.withResolvers<number>();
  const ask = askWithin(10, () => {
    asked += 1;
    return promise;
  });
  expect(await Promise.all([ask(), ask()])).toEqual([undefined, undefined]);
  expect(await ask()).toBeUndefined();
  expect(asked).toBe(1);
  const last = ask();
  answer(7);
  expect(await last).toBe(7);
  const failing = askWithin<number>(10_000, () => Promise.reject(new Error('no database')));
  expect(await failing()).toBeUndefined();
});
