import { PLATFORM, covers, type Scope } from '../../domain/access/scope.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { scopeCondition } from '../core/scopeSql.ts';
import type { Sql } from '../core/sql.ts';
import { scopeColumnsOf, siteColumnsOf, tableOf } from './tables.ts';

const NONE: ReadonlySet<string> = new Set();

/**
 * SQL: whether a record is in the scope of a writer, so that a transaction of theirs may lock it.
 * A site counts for records of its own tenant only.
 */
export function writableCondition(name: ResourceName, scope: Scope): Sql {
  const resource = RESOURCES[name];
  const columns = scopeColumnsOf(resource);
  if (!columns)
    return { sql: covers(scope, { tenantId: PLATFORM }) ? 'TRUE' : 'FALSE', bindings: [] };
  if (scope.kind === 'everywhere' || name === 'sites') return scopeCondition(scope, columns);
  const sites = siteColumnsOf(resource);
  const elsewhere = scopeCondition({ ...scope, siteIds: NONE }, columns);
  if (scope.siteIds.size === 0 || sites.length === 0) return elsewhere;
  const atSites = scopeCondition({ ...scope, tenantIds: NONE, deviceIds: NONE }, columns);
  const table = tableOf(resource);
  const own = `EXISTS (SELECT FROM sites AS own WHERE own.id IN (${sites.map((site) => `${table}.${site}`).join(', ')}) AND own.tenant_id = ${table}.tenant_id)`;
  return {
    sql: `(${elsewhere.sql} OR (${atSites.sql} AND ${own}))`,
    bindings: [...elsewhere.bindings, ...atSites.bindings],
  };
}
