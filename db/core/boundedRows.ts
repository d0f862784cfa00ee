import type { Model, QueryBuilder } from 'objection';
import type { Knex } from './knex.ts';

/** What `boundedRows` adds to a row; names of one word, which no mapper of names changes. */
type Bounded = { pageposition?: unknown; pagefound?: unknown; pagebytes?: unknown };

/**
 * The size of what a page reads. Records of 1 MB exist, and a page may have 200: what is beyond the
 * size is on the next page.
 */
const MAX_PAGE_BYTES = 8 * 1_048_576;

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
 * Removes what `boundedRows` has added to them. `bytes` is the size of all rows but the last.
 */
export function takePage<T extends object>(
  rows: readonly T[],
  limit: number,
): { items: T[]; hasMore: boolean; bytes: number } {
  const found = Number((rows[0] as Bounded | undefined)?.pagefound ?? 0);
  const items = rows.slice(0, limit);
  const bytes = Number((items.at(-1) as Bounded | undefined)?.pagebytes ?? 0);
  for (const item of items as Bounded[]) {
    delete item.pageposition;
    delete item.pagefound;
    delete item.pagebytes;
  }
  return { items, hasMore: found > items.length, bytes };
}

/**
 * Reads a page of up to `limit` records of a query that has an order: fewer if they are large, at least
 * one. `bytes` is the size of all but the last; `before` is that of other rows of the same page.
 */
export async function readBounded<M extends Model>(
  db: Knex,
  query: QueryBuilder<M, M[]>,
  limit: number,
  before = 0,
): Promise<{ items: M[]; hasMore: boolean; bytes: number }> {
  const model = query.modelClass();
  const bounded = boundedRows(
    query.limit(limit + 1).toKnexQuery() as Knex.QueryBuilder,
    'octet_length(found::text)',
    MAX_PAGE_BYTES - before,
  );
  const { rows } = await db.raw<{ rows: object[] }>(...bounded);
  const page = takePage(rows, limit);
  return { ...page, items: page.items.map((row) => model.fromDatabaseJson(row)) };
}
