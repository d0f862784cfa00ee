import type { Model, QueryBuilder } from 'objection';

/** Narrows a list by the filters that were given: column → value, undefined for none. */
export function whereGiven<M extends Model, R>(
  query: QueryBuilder<M, R>,
  filters: Readonly<Record<string, string | boolean | undefined>>,
): void {
  for (const [column, value] of Object.entries(filters))
    if (value !== undefined) void query.where(column, value);
}

/** How many records, and after which key. */
export type PageRequest = { limit: number; after: string | undefined };

/** One page of a list, and the key of its last record when more may follow. */
export type Page<T> = { items: T[]; nextKey: string | null };

/**
 * Reads one page, newest first, of a query over a table whose key sorts by time. `after` is the key of the last
 * record of the page before; the page after it costs the same however far into the list it is.
 */
export async function keysetPage<M extends Model & { id: string }>(
  query: QueryBuilder<M, M[]>,
  { limit, after }: PageRequest,
): Promise<Page<M>> {
  if (after !== undefined) void query.where('id', '<', after);
  return cutPage(await query.orderBy('id', 'desc').limit(limit + 1), limit, (row) => row.id);
}

/** A page out of `limit + 1` rows, of which the last one, when it is there, only says that more follow. */
export function cutPage<T>(rows: readonly T[], limit: number, keyOf: (row: T) => string): Page<T> {
  const items = rows.slice(0, limit);
  const last = rows.length > limit ? items.at(-1) : undefined;
  return { items, nextKey: last === undefined ? null : keyOf(last) };
}
