import { lockAccess } from '../../db/access/access.ts';
import type { Work } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { GrantRecord } from '../../db/models/GrantRecord.ts';
import { movesAny } from '../../db/inventory/locks.ts';
import type { Scope } from '../../domain/access/scope.ts';
import { isPlainId } from '../../domain/inventory/prefetch.ts';
import {
  isValid,
  type Mutation,
  type Planned,
  type Viewer,
} from '../../domain/inventory/planning.ts';
import { OTHER_TENANT } from '../../domain/shared/caller.ts';
import { grantRecordOf } from '../access/grantAudit.ts';

/**
 * Takes the lock of rights before all others when mutations may remove role assignments: those of a
 * site or a device that moves to another tenant, or of devices that an eviction deletes. One may be
 * created at the same time, so it does not matter whether there are any yet. The later
 * steps of an import take it after the locks of the earlier ones; a deadlock is then tried again.
 */
export async function lockRevocations(
  trx: Knex,
  mutations: readonly Mutation[],
  viewer: Viewer,
  scope: Scope,
): Promise<void> {
  const asked = mutations.flatMap(({ resource, operation, record }) => {
    if (operation === 'create' || typeof record !== 'object' || record === null) return [];
    const { id, tenantId, evict } = record as Record<string, unknown>;
    if (resource !== 'sites' && resource !== 'devices') return [];
    const to = typeof tenantId === 'string' && viewer.canWrite({ tenantId }) ? tenantId : null;
    return isPlainId(id) && (to !== null || evict === true)
      ? [
          {
            resource: resource === 'sites' ? ('sites' as const) : ('devices' as const),
            id,
            to,
            evicts: evict === true,
          },
        ]
      : [];
  });
  if (asked.length === 0) return;
  if (await movesAny(trx, asked, scope)) await lockAccess(trx);
}

/**
 * Deletes the role assignments and provider mappings that plans leave behind, each with its audit
 * entry and event in the tenant that the site or the device was of.
 */
export async function revokeGrants(
  work: Work,
  trx: Knex,
  planned: readonly Planned[],
): Promise<void> {
  for (const { resource, id, scope, isOwn } of planned.filter(isValid).flatMap((p) => p.revoked)) {
    const at = resource === 'sites' ? { level: 'site', site_id: id } : { device_id: id };
    const removed = await GrantRecord.query(trx).delete().where(at).returning('*');
    for (const grant of removed)
      grantRecordOf(grant).deleted(work, grant, {
        tenantId: scope.tenantId,
        actor: isOwn ? undefined : OTHER_TENANT,
      });
  }
}
