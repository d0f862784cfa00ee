import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { boundedRows, takePage } from '../../../db/core/boundedRows.ts';
import { startApp, type TestApp } from '../../support/app.ts';

type Row = { n: number; size: number };
type Bound = { limit: number; maxBytes: number; isFirst?: boolean };

let app: TestApp;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
});
afterAll(() => app.stop());

/** A page of rows of these sizes, after as many of them. */
async function readPage(sizes: readonly number[], after: number, bound: Bound) {
  const { db } = app.deps;
  const query = db
    .from(db.raw('unnest(?::int[]) WITH ORDINALITY AS sized (size, n)', [[...sizes]]))
    .where('n', '>', after)
    .orderBy('n')
    .limit(bound.limit + 1)
    .select('n', 'size');
  const { rows } = await db.raw<{ rows: Row[] }>(
    ...boundedRows(query, 'found.size', bound.maxBytes),
  );
  return { sent: rows.length, ...takePage(rows, bound) };
}

/** The sizes on each page of all rows. */
async function readPages(sizes: readonly number[], bound: Bound): Promise<number[][]> {
  const pages: number[][] = [];
  for (let after = 0; ;) {
    const { items, hasMore } = await readPage(sizes, after, bound);
    pages.push(items.map(({ size }) => size));
    if (!hasMore) return pages;
    expect(items.length).toBeGreaterThan(0);
    after += items.length;
  }
}

test.each<[title: string, sizes: number[], pages: number[][]]>([
  [
    'ends exactly at the limit',
    [4, 6, 1, 1],
    [
      [4, 6],
      [1, 1],
    ],
  ],
  ['ends exactly at the limit with its last row', [4, 6], [[4, 6]]],
  ['has one row of the limit', [10, 10, 1], [[10], [10], [1]]],
  ['has one row of more than the limit', [11, 12, 1], [[11], [12], [1]]],
  ['is followed by a row without bytes', [10, 0, 1], [[10], [0, 1]]],
  [
    'has as many rows as the limit of rows',
    [1, 1, 1, 1, 1, 1],
    [
      [1, 1, 1, 1],
      [1, 1],
    ],
  ],
  ['has the last row', [1], [[1]]],
  ['has no rows', [], [[]]],
])('a page that %s', async (_, sizes, pages) => {
  expect(await readPages(sizes, { limit: 4, maxBytes: 10 })).toEqual(pages);
});

test('a page that is full already says that rows follow', async () => {
  for (const maxBytes of [0, -5]) {
    const bound = { limit: 4, maxBytes, isFirst: false };
    expect(await readPage([3, 3], 0, bound)).toMatchObject({ items: [], hasMore: true, bytes: 0 });
    expect(await readPage([], 0, bound)).toMatchObject({ items: [], hasMore: false });
  }
});

test('rows after the page stay in the database, and a page has only the columns of its query', async () => {
  const { sent, items } = await readPage([4, 6, 1, 1, 1], 0, { limit: 5, maxBytes: 10 });
  expect(sent).toBeLessThanOrEqual(3);
  expect(items).toEqual([
    { n: 1, size: 4 },
    { n: 2, size: 6 },
  ]);
});
