import type { Model, QueryBuilder } from 'objection';
import { readBounded } from './boundedRows.ts';

/** Filters a query by column values. Undefined values are ignored. */
export function whereDefined<M extends Model, R>(
  query: QueryBuilder<M, R>,
  filters: Readonly<Record<string, string | boolean | undefined>>,
): void {
  for (const [column, value] of Object.entries(filters))
    if (value !== undefined) void query.where(column, value);
}

/** The size of a page, and the key after which it starts. */
export type PageRequest = { limit: number; after: string | undefined };

/** One page of a list. `nextKey` is the key of its last record when more records follow. */
export type KeysetPage<T> = { items: T[]; nextKey: string | null };

/**
 * Reads one page of a query, newest first. The ids of the table must sort by time. `after` is the
 * last id of the previous page. All pages cost the same.
 */
export async function keysetPage<M extends Model & { id: string }>(
  query: QueryBuilder<M, M[]>,
  { limit, after }: PageRequest,
): Promise<KeysetPage<M>> {
  if (after !== undefined) void query.where('id', '<', after);
  const { items, hasMore } = await readBounded(query.orderBy('id', 'desc'), limit);
  return { items, nextKey: hasMore ? (items.at(-1)?.id ?? null) : null };
}

/** Makes a page of up to `limit + 1` rows. The extra row only shows that more rows follow. */
export function cutPage<T>(
  rows: readonly T[],
  limit: number,
  keyOf: (row: T) => string,
): KeysetPage<T> {
  const items = rows.slice(0, limit);
  const last = rows.length > limit ? items.at(-1) : undefined;
  return { items, nextKey: last === undefined ? null : keyOf(last) };
}
