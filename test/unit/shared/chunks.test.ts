import { expect, test } from '@jest/globals';
import { chunked } from '../../../platform/chunks.ts';

async function groupsOf(items: readonly string[]): Promise<string[][]> {
  const groups: string[][] = [];
  for await (const group of chunked(items, { maxCount: 3, maxBytes: 10 }, ({ length }) => length))
    groups.push(group);
  return groups;
}

test('a group ends with the item with which it has enough items or bytes', async () => {
  expect(await groupsOf(['a', 'b', 'c', 'd'])).toEqual([['a', 'b', 'c'], ['d']]);
  const large = 'x'.repeat(20);
  expect(await groupsOf([large, 'a', large, 'b'])).toEqual([[large], ['a', large], ['b']]);
  expect(await groupsOf([])).toEqual([]);
});
