import type { Knex } from './knex.ts';

/** What `boundedRows` adds to a row; names of one word, which no mapper of names changes. */
type Bounded = { pageposition?: unknown; pagefound?: unknown; pagebytes?: unknown };

/**
 * The statement, with its bindings, of the first rows of `query`, which has an order and a limit: those
 * before which there are fewer than `maxBytes`, so that there is at least one. `size` is the SQL of the
 * bytes of a row. The others never leave the database.
 */
export const boundedRows = (
  query: Knex.QueryBuilder,
  size: string,
  maxBytes: number,
): [sql: string, bindings: Knex.RawBinding[]] => [
  `SELECT * FROM (
     SELECT found.*, row_number() OVER () AS pageposition, count(*) OVER () AS pagefound,
       coalesce(sum(${size}) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS pagebytes
     FROM (?) AS found) AS bounded
   WHERE pagebytes < ? ORDER BY pageposition`,
  [query, maxBytes],
];

/**
 * Makes a page of up to `limit` rows of a bounded statement whose query has the limit `limit + 1`.
 * Removes what `boundedRows` has added to them.
 */
export function takePage<T extends object>(
  rows: readonly T[],
  limit: number,
): { items: T[]; hasMore: boolean } {
  const found = Number((rows[0] as Bounded | undefined)?.pagefound ?? 0);
  const items = rows.slice(0, limit);
  for (const item of items as Bounded[]) {
    delete item.pageposition;
    delete item.pagefound;
    delete item.pagebytes;
  }
  return { items, hasMore: found > items.length };
}
