import { Model, raw, type ModelClass, type QueryBuilder } from 'objection';
import { escapeLike } from '../core/like.ts';
import { cutPage, type KeysetPage } from '../core/keyset.ts';
import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';
import { scopeCondition, whereInScope } from '../core/scopeSql.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import type { Resource, Row } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { sharesReadIn } from '../../domain/inventory/sharing.ts';
import { PLATFORM, type Scope } from '../../domain/access/scope.ts';
import {
  columnOf,
  columnsOf,
  scopeColumnsOf,
  rowOf,
  sqlTypeOf,
  tableOf,
  withinNetwork,
} from './tables.ts';

/** The filter of a list: values of fields, search text, tag and address space. */
export type RecordFilter = {
  fields: Readonly<Record<string, string | number | boolean | null>>;
  /** Texts of which a record contains at least one. */
  q?: readonly string[] | undefined;
  tag?: string | undefined;
  within?: string | undefined;
  /** All networks that can contain the requested network. */
  contains?: readonly string[] | undefined;
  /** Records of other tenants that are shared with those of the caller, instead of their own. */
  shared?: boolean | undefined;
};

/** The order of a list; undefined is by time of creation, newest first. */
export type RecordSort = { field: string; descending: boolean } | undefined;

/** The position of a page: the sort value and the id of the last record of the previous page. */
export type RecordKey = { value: string | number | null; id: string };

const models = new Map<ResourceName, ModelClass<Model>>();

/** The model of a resource, created on first use. */
function modelOf(resource: Resource): ModelClass<Model> {
  const known = models.get(resource.name);
  if (known) return known;
  const model = class extends Model {
    static override tableName = tableOf(resource);
  };
  models.set(resource.name, model);
  return model;
}

type Query = QueryBuilder<Model, Model[]>;

const rowsFrom = (resource: Resource, found: readonly Model[]): Row[] =>
  found.map((each) => rowOf(resource, each.toJSON()));

/** A query for the records inside `scope`. */
function visible(db: Knex, resource: Resource, scope: Scope): Query {
  const query = modelOf(resource)
    .query(db)
    .select(raw(columnsOf(resource)));
  const columns = scopeColumnsOf(resource);
  if (columns) whereInScope(query, scope, columns);
  return query;
}

/** A query for the records outside `scope` that are shared with one of its tenants, or hold for all. */
function shared(db: Knex, resource: Resource, scope: Scope): Query {
  const query = modelOf(resource)
    .query(db)
    .select(raw(columnsOf(resource)));
  if (resource.isPlatformPublic) void query.where('tenant_id', PLATFORM);
  else
    void query.whereRaw("shared_with <> '{}' AND shared_with && ?::text[]", [sharesReadIn(scope)]);
  const inside = scopeCondition(scope, scopeColumnsOf(resource) ?? undefined);
  return query.whereRaw(`(${inside.sql}) IS NOT TRUE`, [...inside.bindings]);
}

/** Finds a record by id inside `scope`. */
export async function findRecord(
  db: Knex,
  resource: Resource,
  scope: Scope,
  id: string,
): Promise<Row | undefined> {
  const columns = scopeColumnsOf(resource);
  const inside = columns ? scopeCondition(scope, columns) : { sql: 'TRUE', bindings: [] };
  const { rows } = await prepared<Record<string, unknown>>(
    db,
    `SELECT ${columnsOf(resource)} FROM ${tableOf(resource)} WHERE id = ? AND ${inside.sql}`,
    [id, ...inside.bindings],
  );
  return rows[0] && rowOf(resource, rows[0]);
}

/** Finds a record of another tenant by id that is shared with a tenant of `scope`. */
export async function findShared(
  db: Knex,
  resource: Resource,
  scope: Scope,
  id: string,
): Promise<Row | undefined> {
  if (!resource.sharable && !resource.isPlatformPublic) return undefined;
  return rowsFrom(resource, await shared(db, resource, scope).where('id', id))[0];
}

/** Finds the records with these ids that are inside `scope`. */
export async function findReadable(
  db: Knex,
  resource: Resource,
  scope: Scope,
  ids: readonly string[],
): Promise<Row[]> {
  return rowsFrom(resource, await visible(db, resource, scope).whereIn('id', [...new Set(ids)]));
}

function applyFilter(
  query: Query,
  resource: Resource,
  { fields, q, tag, within, contains }: RecordFilter,
): void {
  for (const [field, value] of Object.entries(fields)) {
    const column = columnOf(field);
    if (value === null) void query.whereNull(column);
    // An address without a length matches any stored length.
    else if (
      resource.name === 'ip-addresses' &&
      field === 'address' &&
      !String(value).includes('/')
    )
      void query.whereRaw('host = ?::inet', [value]);
    else void query.whereRaw(`${column} = ?::${sqlTypeOf(resource, field)}`, [value]);
  }
  if (q !== undefined)
    void query.whereRaw(
      `(${q.map(() => 'search LIKE ?').join(' OR ')})`,
      q.map((text) => `%${escapeLike(text.toLowerCase())}%`),
    );
  if (tag !== undefined) void query.whereRaw("tags @> ARRAY[?]::text[] AND tags <> '{}'", [tag]);
  const column =
    { prefixes: 'cidr', 'ip-ranges': 'start_address' }[resource.name as string] ?? 'host';
  if (within !== undefined) {
    const { sql, bindings } = withinNetwork(column, within);
    void query.whereRaw(sql, bindings);
  }
  if (contains !== undefined) void query.whereRaw('cidr = ANY (?::cidr[])', [contains]);
}

function applySort(
  query: Query,
  resource: Resource,
  sort: RecordSort,
  after: RecordKey | undefined,
): void {
  const direction = sort && !sort.descending ? 'asc' : 'desc';
  const operator = direction === 'asc' ? '>' : '<';
  if (!sort) {
    if (after) void query.where('id', operator, after.id);
    void query.orderBy('id', direction);
    return;
  }
  const column = columnOf(sort.field);
  if (after)
    void query.whereRaw(`(${column}, id) ${operator} (?::${sqlTypeOf(resource, sort.field)}, ?)`, [
      after.value,
      after.id,
    ]);
  void query.orderBy([
    { column, order: direction },
    { column: 'id', order: direction },
  ]);
}

/** Lists one page of the records inside `scope`; `next` is the key of the next page, or null. */
export async function listRecords(
  db: Knex,
  resource: Resource,
  scope: Scope,
  filter: RecordFilter,
  { sort, after, limit }: { sort: RecordSort; after: RecordKey | undefined; limit: number },
): Promise<{ items: Row[]; next: RecordKey | null }> {
  const query = filter.shared === true ? shared(db, resource, scope) : visible(db, resource, scope);
  applyFilter(query, resource, filter);
  applySort(query, resource, sort, after);
  const page: KeysetPage<Row> = cutPage(
    rowsFrom(resource, await query.limit(limit + 1)),
    limit,
    (row) => row.id,
  );
  const last = page.items.at(-1);
  const next =
    page.nextKey === null || !last
      ? null
      : { id: last.id, value: sort ? (last[sort.field] as string | number) : null };
  return { items: page.items, next };
}

/** Reads a record without a scope. With `lock`, locks it for update. */
export async function readRecord(
  db: Knex,
  name: ResourceName,
  id: string,
  lock = false,
): Promise<Row | undefined> {
  const resource = RESOURCES[name];
  const { rows } = await prepared<Record<string, unknown>>(
    db,
    `SELECT ${columnsOf(resource)} FROM ${tableOf(resource)} WHERE id = ?${lock ? ' FOR UPDATE' : ''}`,
    [id],
  );
  return rows[0] && rowOf(resource, rows[0]);
}
