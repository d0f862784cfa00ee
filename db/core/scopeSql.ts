import type { Model, QueryBuilder } from 'objection';
import type { Knex } from './knex.ts';
import { sizeOf, type Level, type Scope } from '../../domain/access/scope.ts';

/** The columns that say where a row stands, as SQL; a table without a site has none for it. */
export type PlaceColumns = { tenant: string; site?: string; device?: string };

const TENANT_ONLY: PlaceColumns = { tenant: 'tenant_id' };

/** Up to this many ids travel with the query; more are looked up where they are stored, row by row. */
const MAX_IDS_SENT = 100;

type Condition = { sql: string; bindings: Knex.RawBinding[] };

/** The SQL reading of `covers`: a condition that holds for the rows inside `scope`. */
export function scopeCondition(
  scope: Scope,
  columns: PlaceColumns = TENANT_ONLY,
  maxIdsSent = MAX_IDS_SENT,
): Condition {
  if (scope.kind === 'everywhere') return { sql: 'TRUE', bindings: [] };
  const levels: [Level, string | undefined, ReadonlySet<string>][] = [
    ['tenant', columns.tenant, scope.tenantIds],
    ['site', columns.site, scope.siteIds],
    ['device', columns.device, scope.deviceIds],
  ];
  const { stored } = scope;
  const probing = stored !== undefined && sizeOf(scope) > maxIdsSent;
  const parts = levels.flatMap(([level, column, ids]) => {
    if (column === undefined || ids.size === 0) return [];
    return [probing ? probe(level, column, stored) : listed(column, [...ids])];
  });
  if (parts.length === 0) return { sql: 'FALSE', bindings: [] };
  return {
    sql: `(${parts.map(({ sql }) => sql).join(' OR ')})`,
    bindings: parts.flatMap(({ bindings }) => bindings),
  };
}

const listed = (column: string, ids: readonly string[]): Condition =>
  ids.length === 1
    ? // An equality lets the index on (tenant, key) serve the order too.
      { sql: `${column} = ?`, bindings: [...ids] }
    : { sql: `${column} = ANY (?::text[])`, bindings: [[...ids]] };

/** One look into the index of `grants` for each row that is considered, instead of ids by the thousand in the query. */
const probe = (
  level: Level,
  column: string,
  { principals, roleIds }: { principals: readonly string[]; roleIds: readonly string[] },
): Condition => ({
  // OFFSET 0 keeps the planner from reading all grants beforehand, which would cost more than the page.
  sql: `EXISTS (SELECT FROM grants AS held WHERE held.level = '${level}' AND held.target_id = ${column}
          AND held.principal = ANY (?::text[]) AND held.role_id = ANY (?::text[]) OFFSET 0)`,
  bindings: [[...principals], [...roleIds]],
});

/** Narrows a query to the records inside `scope`. */
export function whereInScope<M extends Model, R>(
  query: QueryBuilder<M, R>,
  scope: Scope,
  columns?: PlaceColumns,
): void {
  const { sql, bindings } = scopeCondition(scope, columns);
  void query.whereRaw(sql, bindings);
}
