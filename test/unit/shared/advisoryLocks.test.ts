import { expect, test } from '@jest/globals';
import { LOCKS, LOCK_PREFIXES } from '../../../db/core/advisoryLocks.ts';

test('no two purposes share the number of an advisory lock', () => {
  const numbers = Object.values(LOCKS);
  expect(new Set(numbers).size).toBe(numbers.length);
});

test('no name of one lock can be mistaken for a name of another', () => {
  const prefixes: string[] = Object.values(LOCK_PREFIXES);
  for (const prefix of prefixes) {
    expect(prefixes.filter((other) => other.startsWith(prefix))).toEqual([prefix]);
  }
});
