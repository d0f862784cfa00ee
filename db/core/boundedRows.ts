import type { Model, ModelClass, QueryBuilder } from 'objection';
import type { Knex } from './knex.ts';

/** What `boundedRows` adds to a row; names of one word, which no mapper of names changes. */
type Bounded = { pagebytes?: unknown; pagesize?: unknown; pagemore?: boolean };

/**
 * The size of what a page reads. Records of 1 MB exist, and a page may have 200: what is beyond the
 * size is on the next page.
 */
const MAX_PAGE_BYTES = 8 * 1_048_576;

/**
 * The statement, with its bindings, of the first rows of `query`, which has an order and a limit, up to
 * the one that exceeds `maxBytes`, and always of the first one. `size` is the SQL of the bytes of a row.
 * The others never leave the database, so each row says whether another one follows it.
 */
export const boundedRows = (
  query: Knex.QueryBuilder,
  size: string,
  maxBytes: number,
): [sql: string, bindings: Knex.RawBinding[]] => [
  `SELECT * FROM (
     SELECT found.*, ${size} AS pagesize, coalesce(sum(${size}) OVER earlier, 0) AS pagebytes,
       lead(TRUE, 1, FALSE) OVER earlier AS pagemore
     FROM (?) AS found
     WINDOW earlier AS (ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) AS bounded
   WHERE pagebytes < ?`,
  [query, Math.max(1, maxBytes)],
];

/**
 * Makes a page of up to `limit` rows of a bounded statement whose query has the limit `limit + 1`: those
 * that `maxBytes` can have, and at least one if it `isFirst`. Removes what `boundedRows` has added.
 * `bytes` is their size.
 */
export function takePage<T extends object>(
  rows: readonly T[],
  { limit, maxBytes, isFirst = true }: { limit: number; maxBytes: number; isFirst?: boolean },
): { items: T[]; hasMore: boolean; bytes: number } {
  let bytes = 0;
  let hasMore = rows.length > 0;
  const items: T[] = [];
  for (const row of rows.slice(0, limit)) {
    const bounded = row as Bounded;
    const end = Number(bounded.pagebytes) + Number(bounded.pagesize);
    if (end > maxBytes && !(isFirst && items.length === 0)) break;
    bytes = end;
    hasMore = bounded.pagemore === true;
    delete bounded.pagebytes;
    delete bounded.pagesize;
    delete bounded.pagemore;
    items.push(row);
  }
  return { items, hasMore, bytes };
}

/** A model with columns, as a query selects them, that can be large. */
type Large = { largeColumns?: readonly string[] };

/**
 * Reads a page of up to `limit` records of a query that has an order: fewer if the `largeColumns` of their
 * model are large, at least one. `bytes` is their size; `before` is that of other rows of the same page,
 * which may have `maxBytes`.
 */
export async function readBounded<M extends Model>(
  query: QueryBuilder<M, M[]>,
  limit: number,
  { before = 0, maxBytes: pageBytes = MAX_PAGE_BYTES }: { before?: number; maxBytes?: number } = {},
): Promise<{ items: M[]; hasMore: boolean; bytes: number }> {
  const model: ModelClass<M> & Large = query.modelClass();
  const bounded = query.limit(limit + 1);
  if (!model.largeColumns) {
    const rows = await bounded;
    return { items: rows.slice(0, limit), hasMore: rows.length > limit, bytes: 0 };
  }
  const size = model.largeColumns
    .map((column) => `coalesce(octet_length(found."${column}"::text), 0)`)
    .join(' + ');
  const maxBytes = pageBytes - before;
  const { rows } = await query
    .knex()
    .raw<{ rows: object[] }>(
      ...boundedRows(bounded.toKnexQuery() as Knex.QueryBuilder, size, maxBytes),
    );
  const page = takePage(rows, { limit, maxBytes, isFirst: before === 0 });
  return { ...page, items: page.items.map((row) => model.fromDatabaseJson(row)) };
}
