import type { Model, QueryBuilder } from 'objection';
import { allOf, anyOf, type Sql } from './sql.ts';
import { sizeOf, type Level, type Scope } from '../../domain/access/scope.ts';

/**
 * SQL of the columns with the resource scope of a row. Tables without sites or devices omit theirs.
 * A row that belongs to several sites or devices is inside a scope that contains one of them.
 */
export type ScopeColumns = {
  tenant: string;
  site?: string | readonly string[];
  device?: string | readonly string[];
};

const TENANT_ONLY: ScopeColumns = { tenant: 'tenant_id' };

/**
 * Most ids that are sent as bindings. Larger scopes are read from the `grants` table.
 */
const MAX_IDS_SENT = 1_000;

/** The SQL form of `covers`: a condition that is true for the rows inside `scope`. */
export const scopeCondition = (
  scope: Scope,
  columns: ScopeColumns = TENANT_ONLY,
  maxIdsSent = MAX_IDS_SENT,
): Sql => anyOf(scopeReasons(scope, columns, maxIdsSent));

/**
 * The reasons for which rows are inside `scope`: by their tenant, a site or a device. A query for each
 * reason can use the index of its column; a query for any of them uses none.
 */
export function scopeReasons(
  scope: Scope,
  columns: ScopeColumns = TENANT_ONLY,
  maxIdsSent = MAX_IDS_SENT,
): Sql[] {
  if (scope.kind === 'everywhere') return [{ sql: 'TRUE', bindings: [] }];
  const levels: [Level, readonly string[], ReadonlySet<string>][] = [
    ['tenant', [columns.tenant], scope.tenantIds],
    ['site', [columns.site ?? []].flat(), scope.siteIds],
    ['device', [columns.device ?? []].flat(), scope.deviceIds],
  ];
  const { stored } = scope;
  const usesLookup = stored !== undefined && sizeOf(scope) > maxIdsSent;
  return levels.flatMap(([level, names, ids]) =>
    ids.size === 0
      ? []
      : names.map((column) =>
          usesLookup ? grantLookup(level, column, stored) : idCondition(column, [...ids]),
        ),
  );
}

const idCondition = (column: string, ids: readonly string[]): Sql =>
  ids.length === 1
    ? // With an equality, an index such as (tenant, key) also provides the order.
      { sql: `${column} = ?`, bindings: [...ids] }
    : { sql: `${column} = ANY (?::text[])`, bindings: [[...ids]] };

/**
 * The ids are read from `grants` once for each query, and hashed, instead of sent. `column` stays outside of the
 * subquery: inside, a name without its table would mean the column of `grants`.
 */
function grantLookup(
  level: Level,
  column: string,
  { principals, roleIds }: { principals: readonly string[]; roleIds: readonly string[] },
): Sql {
  const held = allOf([
    { sql: `held.level = '${level}'`, bindings: [] },
    idCondition('held.principal', principals),
    idCondition('held.role_id', roleIds),
  ]);
  return {
    // IS TRUE stops the planner from making it a join, which may read all rows before the first page.
    sql: `(${column} IN (SELECT held.target_id FROM grants AS held WHERE ${held.sql})) IS TRUE`,
    bindings: held.bindings,
  };
}

/** Narrows a query to the records inside `scope`. */
export function whereInScope<M extends Model, R>(
  query: QueryBuilder<M, R>,
  scope: Scope,
  columns?: ScopeColumns,
): void {
  const { sql, bindings } = scopeCondition(scope, columns);
  void query.whereRaw(sql, bindings);
}
