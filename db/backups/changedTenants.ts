import { PLATFORM } from '../../domain/access/scope.ts';
import type { ChangeKind } from '../../domain/backups/backups.ts';
import { quoteIdentifier, type RunQuery } from './catalog.ts';
import type { PlannedTable, RestorePlan } from './restorePlan.ts';
import { restoredTable } from './restoredTables.ts';
import { columnsEqual, countDiffs, diffTable, liveTable } from './sql.ts';

/** How many records of a tenant a restore creates, changes and deletes. */
export type TenantChanges = Readonly<Record<ChangeKind, number>>;

export const NO_CHANGES: TenantChanges = { created: 0, changed: 0, deleted: 0 };

/** SQL: the tenant of a row; undefined for rows that count as a part of another one. */
function tenantOf({ table, columns }: PlannedTable, alias: string): string | undefined {
  if (table.name === 'tenants') return `${alias}.id`;
  if (columns.some(({ name }) => name === 'tenant_id')) return `${alias}.tenant_id`;
  if (table.tenantFilter !== null) return undefined;
  const [key] = table.key;
  return `CASE WHEN ${alias}.${quoteIdentifier(key)} IS NOT NULL THEN '${PLATFORM}' END`;
}

/** SQL: the tenant and the change of each difference. A record that moves to another tenant changes in both. */
function changesSql(plan: RestorePlan, planned: PlannedTable): string | undefined {
  const { table } = planned;
  const [restored, current] = [tenantOf(planned, 's'), tenantOf(planned, 'l')];
  if (restored === undefined || current === undefined) return undefined;
  return `SELECT t.id AS tenant, d.change, count(*) AS records
    FROM ${diffTable(table)} AS d
      LEFT JOIN ${restoredTable(plan, table)} AS s
        ON ${columnsEqual(table.key, 's', 'd')} AND d.change <> 'deleted'
      LEFT JOIN ${liveTable(table)} AS l ON ${columnsEqual(table.key, 'l', 'd')}
      CROSS JOIN LATERAL (SELECT ${restored} UNION SELECT ${current}) AS t (id)
    WHERE t.id IS NOT NULL GROUP BY 1, 2`;
}

/** SQL: likewise for an empty database that has got all its records. */
function allSql(planned: PlannedTable): string | undefined {
  const tenant = planned.table.mode === 'state' ? tenantOf(planned, 't') : undefined;
  return tenant === undefined
    ? undefined
    : `SELECT ${tenant} AS tenant, 'created' AS change, count(*) AS records
       FROM ${liveTable(planned.table)} AS t GROUP BY 1`;
}

async function sumUp(
  query: RunQuery,
  selects: readonly (string | undefined)[],
): Promise<Map<string, TenantChanges>> {
  const byTenant = new Map<string, TenantChanges>();
  for (const select of selects) {
    if (select === undefined) continue;
    const rows = await query<{ tenant: string; change: ChangeKind; records: number }>(select);
    for (const { tenant, change, records } of rows) {
      const sum = byTenant.get(tenant) ?? NO_CHANGES;
      byTenant.set(tenant, { ...sum, [change]: sum[change] + records });
    }
  }
  return byTenant;
}

/**
 * The tenants whose records a restore changes. Requires `findDifferences`; call it before the
 * differences are applied.
 */
export async function findChangedTenants(
  query: RunQuery,
  plan: RestorePlan,
): Promise<Map<string, TenantChanges>> {
  const counts = await countDiffs(query, plan.tables);
  const changed = plan.tables.filter(({ table }) => (counts.get(table.name) ?? 0) > 0);
  return sumUp(
    query,
    changed.map((planned) => changesSql(plan, planned)),
  );
}

/** The tenants that have records after a restore into an empty database. */
export const findRestoredTenants = (
  query: RunQuery,
  { tables }: RestorePlan,
): Promise<Map<string, TenantChanges>> => sumUp(query, tables.map(allSql));
