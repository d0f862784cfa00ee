import { PLATFORM, type Scope } from '../../domain/access/scope.ts';
import type { QuotaName, QuotaOverrides } from '../../domain/access/quotas.ts';
import { lockKeySql } from '../core/advisoryLocks.ts';
import { cutPage, type KeysetPage, type PageRequest } from '../core/keyset.ts';
import type { Knex } from '../core/knex.ts';
import { scopeCondition } from '../core/scopeSql.ts';
import { TenantQuota } from '../models/TenantQuota.ts';

/** What a tenant owns, and the limits that the platform has set for it. Version 0: none so far. */
export type QuotaRow = {
  tenantId: string;
  overrides: QuotaOverrides;
  used: Readonly<Record<string, number>>;
  version: number;
};

const COLUMNS = `t.id AS "tenantId", coalesce(q.limits, '{}') AS overrides, coalesce(q.version, 0) AS version,
  (SELECT coalesce(json_object_agg(quota, used), '{}') FROM (
     SELECT quota, sum(change) AS used FROM quota_usage WHERE tenant_id = t.id GROUP BY quota
   ) AS counted) AS used`;

/** The tenants inside `scope`, in the order of their ids. The platform has no quotas. */
export async function listQuotas(
  db: Knex,
  scope: Scope,
  { limit, after }: PageRequest,
): Promise<KeysetPage<QuotaRow>> {
  const inScope = scopeCondition(scope, { tenant: 't.id' });
  const { rows } = await db.raw<{ rows: QuotaRow[] }>(
    `SELECT ${COLUMNS} FROM tenants AS t LEFT JOIN tenant_quotas AS q ON q.tenant_id = t.id
     WHERE t.id <> ? AND t.id > ? AND ${inScope.sql} ORDER BY t.id LIMIT ?`,
    [PLATFORM, after ?? '', ...inScope.bindings, limit + 1],
  );
  return cutPage(rows, limit, (row) => row.tenantId);
}

/** The quotas of a tenant inside `scope`. */
export async function findQuotas(
  db: Knex,
  scope: Scope,
  tenantId: string,
): Promise<QuotaRow | undefined> {
  const inScope = scopeCondition(scope, { tenant: 't.id' });
  const { rows } = await db.raw<{ rows: QuotaRow[] }>(
    `SELECT ${COLUMNS} FROM tenants AS t LEFT JOIN tenant_quotas AS q ON q.tenant_id = t.id
     WHERE t.id <> ? AND t.id = ? AND ${inScope.sql}`,
    [PLATFORM, tenantId, ...inScope.bindings],
  );
  return rows[0];
}

/**
 * How many records of a kind a tenant owns; 0 for the platform, whose records are not counted. Others
 * that ask wait until the transaction ends, so that each sees what the one before it has added.
 */
export async function lockOwned(trx: Knex, tenantId: string, name: QuotaName): Promise<number> {
  await trx.raw(`SELECT pg_advisory_xact_lock(${lockKeySql('quota', '?')})`, [
    `${tenantId}/${name}`,
  ]);
  const { rows } = await trx.raw<{ rows: { used: number }[] }>('SELECT quota_used(?, ?) AS used', [
    tenantId,
    name,
  ]);
  return rows[0]?.used ?? 0;
}

/** Locks a tenant until the transaction ends, so that changes of its quotas wait for each other. */
export const lockTenant = async (trx: Knex, tenantId: string): Promise<void> =>
  void (await trx.raw('SELECT FROM tenants WHERE id = ? FOR NO KEY UPDATE', [tenantId]));

/** Replaces the limits that the platform has set for a tenant. */
export const saveOverrides = async (
  trx: Knex,
  tenantId: string,
  { limits, version, now }: { limits: QuotaOverrides; version: number; now: Date },
): Promise<void> =>
  void (await TenantQuota.query(trx)
    .insert({ tenantId, limits, version, createdAt: now, updatedAt: now })
    .onConflict('tenant_id')
    .merge(['limits', 'version', 'updated_at']));

/** Groups of entries that one round folds, and the entries from which a group is worth it. */
const FOLDED_GROUPS = 1_000;
const MANY_ENTRIES = 100;

/** Folds the ledger of quotas where deletions alone have made it long. */
export async function foldQuotaUsage(db: Knex): Promise<void> {
  await db.raw(
    `SELECT fold_quota_usage(tenant_id, quota) FROM (
       SELECT tenant_id, quota FROM quota_usage GROUP BY tenant_id, quota HAVING count(*) > ? LIMIT ?
     ) AS long`,
    [MANY_ENTRIES, FOLDED_GROUPS],
  );
}
