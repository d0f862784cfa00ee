import { raw, type Model, type QueryBuilder } from 'objection';
import {
  MAX_COUNTED,
  MAX_FACET_VALUES,
  type ListAnswer,
  type ListCondition,
  type ListCount,
  type ListFacet,
  type ListKey,
  type ListRequest,
} from '../../domain/shared/lists.ts';
import { currentConnectionUser } from '../../platform/connectionUser.ts';
import { readBounded } from './boundedRows.ts';
import { isCancelledStatement } from './constraints.ts';
import type { Knex } from './knex.ts';
import { columnOf, conditionSql, sqlTypeOf } from './listConditions.ts';
import type { Sql } from './sql.ts';

type Query = QueryBuilder<Model, Model[]>;

/** What one list reads. */
export type ListSource<M extends Model> = {
  db: Knex;
  /** A query for the records that the caller may see, with the filters that only this list has. */
  visible(): QueryBuilder<M, M[]>;
  /** The columns of fields that do not have the name of the field. */
  columns?: Readonly<Record<string, string>>;
  /** The SQL of a condition that is more than a comparison with the column; undefined for others. */
  condition?(condition: ListCondition): Sql | undefined;
};

/** The name under which a query returns the sort value of a record as text. */
const SORT_KEY = 'listSortKey';

/** A count or a facet that takes longer is left out. */
const COUNT_TIMEOUT_MS = 1_000;

/**
 * Answers a request for a list: the page, and what it asks to count. Counts have the conditions of the
 * page; a facet lacks those on its own field, so that it shows what else one could choose.
 */
export async function readList<M extends Model & { id: string }>(
  source: ListSource<M>,
  request: ListRequest,
): Promise<ListAnswer<M>> {
  const page = await readPage(source, request);
  const counts = await readCounts(source.db, request, (where, field) =>
    countable(
      source,
      where,
      field === undefined ? 'id' : `${columnIn(source, field)} AS value, id`,
    ),
  );
  return { ...page, ...counts };
}

/**
 * What a request asks to count. `found` makes the statement with the first `MAX_COUNTED` matching rows
 * and one more, with a field as `value`.
 */
export async function readCounts(
  db: Knex,
  { where, count, facets }: Pick<ListRequest, 'where' | 'count' | 'facets'>,
  found: (
    where: readonly ListCondition[],
    field: string | undefined,
  ) => Knex.QueryBuilder | Knex.Raw,
): Promise<Pick<ListAnswer<unknown>, 'count' | 'facets'>> {
  const counted = count && { count: await countOf(db, found(where, undefined)) };
  if (facets.length === 0) return { ...counted };
  const byField: Record<string, ListFacet | null> = {};
  for (const { field } of facets) {
    const rest = where.filter((condition) => condition.field !== field);
    byField[field] = await facetOf(db, found(rest, field));
  }
  return { ...counted, facets: byField };
}

const columnIn = (source: Pick<ListSource<Model>, 'columns'>, field: string): string =>
  source.columns?.[field] ?? columnOf(field);

/** The visible records that satisfy the conditions. */
function matching<M extends Model>(
  source: ListSource<M>,
  where: readonly ListCondition[],
): QueryBuilder<M, M[]> {
  const query = source.visible();
  for (const condition of where) {
    const { sql, bindings } =
      source.condition?.(condition) ?? conditionSql(columnIn(source, condition.field), condition);
    void query.whereRaw(sql, bindings);
  }
  return query;
}

type Refine = (query: Query) => void;

/**
 * The order, in parts of which each reads one range of an index: the records with a value, then those
 * without.
 */
function partsOf(source: ListSource<Model>, { sort, after }: ListRequest): Refine[] {
  const direction = sort && !sort.descending ? 'asc' : 'desc';
  const operator = direction === 'asc' ? '>' : '<';
  const byId: Refine = (query) => {
    if (after) void query.where('id', operator, after.id);
    void query.orderBy('id', direction);
  };
  if (!sort || sort.field === 'id') return [byId];
  const column = columnIn(source, sort.field);
  const key = `(${column}, id) ${operator} (?::${sqlTypeOf(sort.kind)}, ?)`;
  const withValue: Refine = (query) => {
    if (sort.nullable) void query.whereNotNull(column);
    if (after?.value != null) void query.whereRaw(key, [after.value, after.id]);
    void query.orderBy([
      { column, order: direction },
      { column: 'id', order: direction },
    ]);
  };
  if (!sort.nullable) return [withValue];
  const isAfterValues = after?.value === null;
  const withoutValue: Refine = (query) => {
    void query.whereNull(column);
    if (isAfterValues) byId(query);
    else void query.orderBy('id', direction);
  };
  return isAfterValues ? [withoutValue] : [withValue, withoutValue];
}

async function readPage<M extends Model & { id: string }>(
  source: ListSource<M>,
  request: ListRequest,
): Promise<{ items: M[]; next: ListKey | null }> {
  const { limit, sort, where } = request;
  const items: M[] = [];
  let hasMore = false;
  let bytes = 0;
  for (const refine of partsOf(source as unknown as ListSource<Model>, request)) {
    const query = matching(source, where);
    if (sort && sort.field !== 'id') {
      if (!query.hasSelects()) void query.select('*');
      void query.select(raw(`${columnIn(source, sort.field)}::text`).as(SORT_KEY));
    }
    refine(query as unknown as Query);
    const part = await readBounded(query, limit - items.length, { before: bytes });
    items.push(...part.items);
    ({ hasMore } = part);
    bytes += part.bytes;
    if (hasMore) break;
  }
  const lastValue = items.map((item) => takeSortKey(item)).at(-1) ?? null;
  const last = hasMore ? items.at(-1) : undefined;
  return { items, next: last ? { value: lastValue, id: last.id } : null };
}

/** Removes the sort value from a row and returns it. */
function takeSortKey(row: object): string | null {
  const keyed = row as { [SORT_KEY]?: string | null };
  const value = keyed[SORT_KEY] ?? null;
  // oxlint-disable-next-line typescript/no-dynamic-delete
  delete keyed[SORT_KEY];
  return value;
}

/**
 * Reads in a transaction that cannot write. Null if a statement takes too long, or if the request has
 * to do without.
 */
export async function readInTime<T>(db: Knex, read: (trx: Knex) => Promise<T>): Promise<T | null> {
  if (currentConnectionUser()?.leavesOutCounts) return null;
  try {
    return await db.transaction(
      async (trx) => {
        await trx.raw(`SET LOCAL statement_timeout = ${COUNT_TIMEOUT_MS}`);
        return read(trx);
      },
      { readOnly: true },
    );
  } catch (error) {
    if (isCancelledStatement(error)) return null;
    throw error;
  }
}

/** The first matching records in the order of ids, one more than are counted. */
const countable = <M extends Model>(
  source: ListSource<M>,
  where: readonly ListCondition[],
  select: string,
) =>
  matching(source, where)
    .clearSelect()
    .select(raw(select))
    .orderBy('id', 'desc')
    .limit(MAX_COUNTED + 1)
    .toKnexQuery();

/** Counts the rows of a statement, which has the first `MAX_COUNTED` and one more. */
const countOf = (db: Knex, found: Knex.QueryBuilder | Knex.Raw): Promise<ListCount | null> =>
  readInTime(db, async (trx) => {
    const { rows } = await trx.raw<{ rows: { n: number }[] }>(
      'SELECT count(*)::int AS n FROM (?) AS found',
      [found],
    );
    const n = rows[0]?.n ?? 0;
    return { value: Math.min(n, MAX_COUNTED), exact: n <= MAX_COUNTED };
  });

/** Counts the rows of such a statement by their column `value`. */
const facetOf = (db: Knex, found: Knex.QueryBuilder | Knex.Raw): Promise<ListFacet | null> =>
  readInTime(db, async (trx) => {
    const { rows } = await trx.raw<{
      rows: { value: string | boolean | number | null; count: number; total: number }[];
    }>(
      `SELECT value, count(*) FILTER (WHERE n <= ${MAX_COUNTED})::int AS count,
              (sum(count(*)) OVER ())::int AS total
       FROM (SELECT value, row_number() OVER () AS n FROM (?) AS found) AS numbered
       GROUP BY value ORDER BY count DESC, value LIMIT ${MAX_FACET_VALUES}`,
      [found],
    );
    const total = Math.min(rows[0]?.total ?? 0, MAX_COUNTED);
    const values = rows
      .filter(({ count }) => count > 0)
      .map(({ value, count }) => ({ value, count }));
    const listed = values.reduce((sum, { count }) => sum + count, 0);
    return { values, exact: (rows[0]?.total ?? 0) <= MAX_COUNTED, others: total - listed };
  });
