import { Model, raw, type ModelClass, type QueryBuilder } from 'objection';
import { likeAnyCase } from '../core/like.ts';
import type { Knex } from '../core/knex.ts';
import {
  conditionSql,
  createdAtSql,
  isOneOf,
  isOtherThan,
  LONGEST_COMMIT_MS,
} from '../core/listConditions.ts';
import { readList } from '../core/lists.ts';
import { prepared } from '../core/prepared.ts';
import { scopeCondition, whereInScope } from '../core/scopeSql.ts';
import { allOf, anyOf, type Sql } from '../core/sql.ts';
import { columnKindOf } from '../../domain/inventory/lists.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import type { Resource, Row } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { PLATFORM, type Scope } from '../../domain/access/scope.ts';
import {
  withItems,
  type ListAnswer,
  type ListCondition,
  type ListRequest,
} from '../../domain/shared/lists.ts';
import type { IdKind } from '../../platform/ids.ts';
import { sharedCondition } from './readable.ts';
import {
  betweenEnds,
  columnOf,
  columnsOf,
  scopeColumnsOf,
  rowOf,
  tableOf,
  withinNetwork,
} from './tables.ts';

/** The filters of a list that are more than a comparison with a field. */
export type RecordFilter = {
  /** Texts of which a record contains at least one. */
  q?: readonly string[] | undefined;
  tags?: { any?: Texts; all?: Texts; not?: Texts } | undefined;
  within?: string | undefined;
  /** All networks that can contain the requested network. */
  contains?: readonly string[] | undefined;
  /** Records of other tenants that are shared with those of the caller, instead of their own. */
  shared?: boolean | undefined;
  /** Cables that end at one of these devices. */
  devices?: readonly string[] | undefined;
  /** Values of custom fields, null for none: a record has one of each; negated, it has none of them. */
  customFields?: readonly CustomFieldFilter[] | undefined;
};

type Texts = readonly string[] | undefined;
type CustomFieldFilter = { name: string; values: readonly unknown[]; isNegated: boolean };

type Stored = Model & { id: string };

const models = new Map<ResourceName, ModelClass<Stored>>();

/** The model of a resource, created on first use. */
function modelOf(resource: Resource): ModelClass<Stored> {
  const known = models.get(resource.name);
  if (known) return known;
  const model = class extends Model {
    static override tableName = tableOf(resource);
    static largeColumns = 'customFields' in resource.fields ? ['customFields'] : undefined;
    declare id: string;
  };
  models.set(resource.name, model);
  return model;
}

type Query = QueryBuilder<Stored, Stored[]>;

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
  const byOthers = sharedCondition(resource, scope) ?? anyOf([]);
  void query.whereRaw(byOthers.sql, byOthers.bindings);
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

/** The column with the address or network of a record. */
const networkColumnOf = ({ name }: Resource): string =>
  ({ prefixes: 'cidr', 'ip-ranges': 'start_address' })[name as string] ?? 'host';

/** When a network has more records, reading in the order of the page finds them sooner. */
const MAX_READ_FIRST = 100_000;

/**
 * True if the records in a network are to be read before the order of the list. PostgreSQL prefers the order, and takes
 * them for evenly distributed in it; but those of one network are often created together, so that it would read nearly all
 * others first (docs/adr/0076-a-network-is-read-before-its-order.md).
 */
async function readsNetworkFirst(
  db: Knex,
  resource: Resource,
  { within }: RecordFilter,
  { sort, after }: ListRequest,
): Promise<boolean> {
  const column = networkColumnOf(resource);
  // In this order they follow one another.
  if (sort && columnOf(sort.field) === column) return false;
  // Later pages continue in the order: an export of a hundred pages must not read the network a hundred times.
  if (within === undefined || after) return false;
  const { sql, bindings } = betweenEnds(column, within);
  const { rows } = await db.raw<{ rows: { 'QUERY PLAN': [{ Plan: { 'Plan Rows': number } }] }[] }>(
    `EXPLAIN (FORMAT JSON) SELECT FROM ${tableOf(resource)} WHERE ${sql}`,
    bindings,
  );
  const expected = rows[0]?.['QUERY PLAN'][0].Plan['Plan Rows'] ?? Infinity;
  return expected <= MAX_READ_FIRST;
}

/** Reads the records of a query before any order: what follows has them as its table. */
const readingFirst = (db: Knex, resource: Resource, query: Query): Query =>
  modelOf(resource)
    .query(db)
    .select(raw(columnsOf(resource)))
    .from(
      raw(`(? OFFSET 0) AS ${tableOf(resource)}`, [query.clearSelect().select('*').toKnexQuery()]),
    );

function applyFilter(
  query: Query,
  resource: Resource,
  { q, tags = {}, within, contains, devices, customFields = [] }: RecordFilter,
): void {
  if (q !== undefined) {
    const { sql, bindings } = anyOf(
      q.map((text) => likeAnyCase('search', text, (form) => `%${form}%`)),
    );
    void query.whereRaw(sql, bindings);
  }
  if (tags.any) void query.whereRaw("tags && ?::text[] AND tags <> '{}'", [tags.any]);
  if (tags.all) void query.whereRaw("tags @> ?::text[] AND tags <> '{}'", [tags.all]);
  if (tags.not) void query.whereRaw('NOT tags && ?::text[]', [tags.not]);
  if (within !== undefined) {
    const { sql, bindings } = withinNetwork(networkColumnOf(resource), within);
    void query.whereRaw(sql, bindings);
    if (resource.name === 'ip-ranges') void query.whereRaw('end_address <<= ?::cidr', [within]);
  }
  if (contains !== undefined) void query.whereRaw('cidr = ANY (?::cidr[])', [contains]);
  if (devices !== undefined)
    void query.whereRaw(
      `id IN (SELECT e.cable_id FROM interfaces AS i JOIN cable_ends AS e ON e.interface_id = i.id
              WHERE i.device_id = ANY (?::text[]))`,
      [[...devices]],
    );
  for (const each of customFields) {
    const { sql, bindings } = customFieldSql(each);
    void query.whereRaw(sql, bindings);
  }
}

function customFieldSql({ name, values, isNegated }: CustomFieldFilter): Sql {
  const hasValue: Sql = { sql: 'custom_fields \\? ?', bindings: [name] };
  const parts = values.map((value): Sql =>
    value === null
      ? isOtherThan(hasValue)
      : { sql: 'custom_fields @> ?::jsonb', bindings: [JSON.stringify({ [name]: value })] },
  );
  const isListed = anyOf(parts);
  if (isNegated) return isOtherThan(isListed);
  // The index has records with custom fields only.
  return values.includes(null)
    ? isListed
    : allOf([isListed, { sql: "custom_fields <> '{}'", bindings: [] }]);
}

/**
 * An id is made when a change is planned, which may be days before the record is created; that of a large
 * import long after its commit has started.
 */
const CREATED_AT = { toleranceMs: 60_000, laterMs: LONGEST_COMMIT_MS, earlierIds: true };

/** The conditions that are more than a comparison with a column. */
function conditionOf({ name, idPrefix }: Resource, condition: ListCondition): Sql | undefined {
  const { field, operator, values } = condition;
  if (field === 'createdAt' && idPrefix !== null) {
    const created = createdAtSql(idPrefix as IdKind, condition, CREATED_AT);
    // The index on the time of the update helps. Until 0.3.0, an update could have the time of a commit that
    // began before the one that created the record.
    return created && (operator === 'gte' || operator === 'gt')
      ? allOf([
          created,
          {
            sql: `updated_at >= ?::timestamptz - interval '${LONGEST_COMMIT_MS} milliseconds'`,
            bindings: [values[0] ?? null],
          },
        ])
      : created;
  }
  if (name !== 'ip-addresses' || field !== 'address') return undefined;
  // An address without a length matches any stored length.
  const [bare, full] = [false, true].map((hasLength) =>
    values.filter((value) => String(value).includes('/') === hasLength),
  );
  const equal = anyOf([
    ...(bare?.length ? [isOneOf('host', 'inet', bare)] : []),
    ...(full?.length ? [isOneOf('address', 'inet', full)] : []),
  ]);
  return operator === 'in' ? equal : isOtherThan(equal);
}

/** Lists the records inside `scope`. */
export async function listRecords(
  db: Knex,
  resource: Resource,
  scope: Scope,
  filter: RecordFilter,
  request: ListRequest,
): Promise<ListAnswer<Row>> {
  const isFirst = await readsNetworkFirst(db, resource, filter, request);
  const answer = await readList(
    {
      db,
      visible() {
        const query =
          filter.shared === true ? shared(db, resource, scope) : visible(db, resource, scope);
        applyFilter(query, resource, filter);
        return isFirst ? readingFirst(db, resource, query) : query;
      },
      condition: (condition) => conditionOf(resource, condition),
    },
    request,
  );
  return withItems(answer, rowsFrom(resource, answer.items));
}

/**
 * Ids of the records with one of these values in a field that are inside `scope` or shared with it, at
 * most `limit`.
 */
export async function findIdsBy(
  db: Knex,
  resource: Resource,
  scope: Scope,
  { field, values, limit }: { field: string; values: readonly string[]; limit: number },
): Promise<string[]> {
  const condition: ListCondition = { ...columnKindOf(resource, field), operator: 'in', values };
  const { sql, bindings } =
    conditionOf(resource, condition) ?? conditionSql(columnOf(field), condition);
  const queries = [
    visible(db, resource, scope),
    ...(resource.sharable || resource.isPlatformPublic ? [shared(db, resource, scope)] : []),
  ];
  const ids = new Set<string>();
  for (const query of queries)
    for (const { id } of await query
      .clearSelect()
      .select('id')
      .whereRaw(sql, bindings)
      .limit(limit - ids.size))
      ids.add(id);
  return [...ids];
}

/** The tenants with records in `scope`, also those of which it has single sites or devices only. */
export function tenantsIn(scope: Scope): Sql {
  const { sql, bindings } = scopeCondition(scope);
  const parts: Sql[] = [{ sql, bindings: [...bindings] }];
  if (scope.kind === 'everywhere') return anyOf(parts);
  for (const [table, ids] of [
    ['sites', scope.siteIds],
    ['devices', scope.deviceIds],
  ] as const)
    if (ids.size > 0)
      parts.push({
        sql: `tenant_id IN (SELECT tenant_id FROM ${table} WHERE id = ANY (?::text[]))`,
        bindings: [[...ids]],
      });
  return anyOf(parts);
}

/** The types of the custom fields with a name; `hasNone`: `none` is one of their choices. */
export type CustomFieldTypes = { types: string[]; hasNone: boolean };

/** The types of the custom fields of a resource that hold inside `scope`, by their names. */
export async function customFieldTypes(
  db: Knex,
  resource: Resource,
  scope: Scope,
  names: readonly string[],
): Promise<Map<string, CustomFieldTypes>> {
  const { sql, bindings } = tenantsIn(scope);
  const { rows } = await prepared<CustomFieldTypes & { name: string }>(
    db,
    `SELECT name, array_agg(DISTINCT type) AS types, bool_or('none' = ANY (choices)) AS "hasNone"
     FROM custom_fields
     WHERE resource = ? AND name = ANY (?::text[]) AND (tenant_id = ? OR ${sql})
     GROUP BY name`,
    [resource.name, [...names], PLATFORM, ...bindings],
  );
  return new Map(rows.map(({ name, ...types }) => [name, types]));
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
