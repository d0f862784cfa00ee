import type { Scope } from '../../domain/access/scope.ts';
import { NO_OVERRIDES, type RetentionOverrides } from '../../domain/retention/retention.ts';
import { cutPage, type KeysetPage, type PageRequest } from '../core/keyset.ts';
import type { Knex } from '../core/knex.ts';
import { scopeCondition } from '../core/scopeSql.ts';
import { RetentionSettings } from '../models/RetentionSettings.ts';

/** The periods of a tenant that differ from the defaults. Version 0: none were ever set. */
export type RetentionRow = RetentionOverrides & { tenantId: string; version: number };

const SELECT = `SELECT t.id AS "tenantId", coalesce(r.days, '{}') AS days,
    coalesce(r.job_types, '{}') AS "jobTypes", coalesce(r.version, 0) AS version
  FROM tenants AS t LEFT JOIN retention_settings AS r ON r.tenant_id = t.id`;

/** The tenants inside `scope`, in the order of their ids. */
export async function listRetention(
  db: Knex,
  scope: Scope,
  { limit, after }: PageRequest,
): Promise<KeysetPage<RetentionRow>> {
  const inScope = scopeCondition(scope, { tenant: 't.id' });
  const { rows } = await db.raw<{ rows: RetentionRow[] }>(
    `${SELECT} WHERE t.id > ? AND ${inScope.sql} ORDER BY t.id LIMIT ?`,
    [after ?? '', ...inScope.bindings, limit + 1],
  );
  return cutPage(rows, limit, (row) => row.tenantId);
}

/** The periods of a tenant inside `scope`. */
export async function findRetention(
  db: Knex,
  scope: Scope,
  tenantId: string,
): Promise<RetentionRow | undefined> {
  const inScope = scopeCondition(scope, { tenant: 't.id' });
  const { rows } = await db.raw<{ rows: RetentionRow[] }>(
    `${SELECT} WHERE t.id = ? AND ${inScope.sql}`,
    [tenantId, ...inScope.bindings],
  );
  return rows[0];
}

/** What differs from the defaults for these tenants, also for deleted ones. */
export async function readOverrides(
  db: Knex,
  tenantIds: readonly string[],
): Promise<ReadonlyMap<string, RetentionOverrides>> {
  const rows = await RetentionSettings.query(db).findByIds([...tenantIds]);
  return new Map(rows.map(({ tenantId, days, jobTypes }) => [tenantId, { days, jobTypes }]));
}

/**
 * What differs from the defaults for a tenant now. It does not change until the transaction ends:
 * a change waits for the lock of the tenant (`lockTenant`).
 */
export async function lockOverrides(trx: Knex, tenantId: string): Promise<RetentionOverrides> {
  await trx.raw('SELECT FROM tenants WHERE id = ? FOR SHARE', [tenantId]);
  return (await readOverrides(trx, [tenantId])).get(tenantId) ?? NO_OVERRIDES;
}

/** What differs from the defaults, for all tenants for which something does. */
export const readAllOverrides = (db: Knex): Promise<RetentionOverrides[]> =>
  RetentionSettings.query(db).select('days', 'job_types').execute();

/**
 * Replaces the periods of a tenant. Those from before it was created are those of an earlier tenant with its id, for a
 * restore: the clock of this process may be behind that of the one which has created it.
 */
export const saveRetention = async (
  trx: Knex,
  { tenantId, days, jobTypes, version }: RetentionRow,
  now: Date,
): Promise<void> => {
  const createdAt = 'SELECT created_at FROM tenants WHERE id = ?';
  const updatedAt = trx.raw(`greatest(?::timestamptz, (${createdAt}))`, [now, tenantId]);
  await RetentionSettings.query(trx)
    .insert({ tenantId, days, jobTypes, version, createdAt: now, updatedAt })
    .onConflict('tenant_id')
    .merge(['days', 'job_types', 'version', 'updated_at']);
};
