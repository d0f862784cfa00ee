import { escapeLiteral } from 'pg';
import { MAX_FINDINGS } from '../../domain/backups/backups.ts';
import type { Resource } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { numbered } from '../core/sql.ts';
import { columnOf, tableOf } from '../inventory/tables.ts';
import { writableCondition } from '../inventory/writable.ts';
import type { RunQuery } from './catalog.ts';
import type { RestoreConflict, TenantRestore } from './restoreConflict.ts';
import type { PlannedTable } from './restorePlan.ts';
import { restoredTable } from './restoredTables.ts';
import { diffTable, liveTable } from './sql.ts';
import { SPACE_OF, supernetsOf } from './unassignedSpace.ts';

/**
 * Records that a restore of one tenant would tie to a record of another one, although that is neither
 * shared with the tenant nor writable for the owner of the restore: the same that `checkTies` requires
 * of a change (domain/inventory/ties.ts). A reference that a current record has is no new tie.
 */
export async function findForeignTies(
  query: RunQuery,
  restore: TenantRestore,
): Promise<RestoreConflict[]> {
  if (restore.writable.kind === 'everywhere') return [];
  const found: RestoreConflict[] = [];
  for (const each of restore.written) {
    const resource = Object.values(RESOURCES).find((one) => tableOf(one) === each.table.name);
    if (!resource) continue;
    for (const [field, target] of foreignReferences(resource)) {
      const { sql, bindings } = tiesSql(restore, each, field, target);
      found.push(...(await query<RestoreConflict>(sql, bindings)));
    }
  }
  return found;
}

/** The references that can be to a record of another tenant, and are not computed. */
function foreignReferences({ fields }: Resource): [field: string, target: Resource][] {
  return Object.entries(fields).flatMap(([field, { reference, derived }]): [string, Resource][] => {
    if (reference === undefined || reference === 'tenants' || derived) return [];
    if (field === 'parentPrefixId' || RESOURCES[reference].scopeKind === 'catalogue') return [];
    return [[field, RESOURCES[reference]]];
  });
}

function tiesSql(
  { plan, tenantId, writable }: TenantRestore,
  { table }: PlannedTable,
  field: string,
  target: Resource,
) {
  const column = columnOf(field);
  const name = tableOf(target);
  const tenant = escapeLiteral(tenantId);
  const allowed = writableCondition(target.name, writable);
  const isShared = target.sharable ? `p.shared_with && ARRAY['*', ${tenant}]` : 'false';
  return {
    sql: `SELECT 'not_shared' AS code, '${table.name}' AS table, c.id AS key,
        '${name} ' || c.${column} AS other
      FROM ${restoredTable(plan, table)} AS c
        JOIN ${diffTable(table)} AS d ON d.id = c.id AND d.change <> 'deleted'
        JOIN public.${name} AS p ON p.id = c.${column} AND p.tenant_id <> ${tenant}
        LEFT JOIN ${liveTable(table)} AS l ON l.id = c.id
      WHERE l.${column} IS DISTINCT FROM c.${column} AND NOT (${isShared})
        AND NOT ${isInOwnPrefix(table.name, column, tenant)}
        AND NOT EXISTS (SELECT FROM public.${name} WHERE ${name}.id = p.id AND ${numbered(allowed.sql)})
      LIMIT ${MAX_FINDINGS}`,
    bindings: allowed.bindings,
  };
}

/** True in a current prefix of the tenant: who put that into the VRF lets the tenant use it. */
function isInOwnPrefix(table: string, column: string, tenant: string): string {
  const space = SPACE_OF[table];
  if (!space || column !== 'vrf_id') return 'false';
  return `EXISTS (SELECT FROM public.prefixes AS q
    WHERE q.space_key IN (c.vrf_id, c.vrf_id || '/' || ${tenant}) AND q.tenant_id = ${tenant}
      AND q.cidr = ANY (${supernetsOf(space.network('c'))}))`;
}
