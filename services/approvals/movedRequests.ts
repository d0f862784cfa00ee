import type { Work } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { assigneesOf, findOpenAt } from '../../db/approvals/approvals.ts';
import type { PlannedChange } from '../../domain/inventory/planSnapshot.ts';
import { approvalEventData, approvalSubject } from './approvalAudit.ts';

/** A device, or a site, that leaves a site of a tenant. `toSiteId`: where it goes in the same tenant. */
type Move = { tenantId: unknown; toSiteId: string | null };

/**
 * Records which open requests follow a device to another site, or lose the site because it moves to another tenant:
 * others decide about them from now on. Call it before the changes are written.
 */
export async function recordMovedRequests(
  work: Work,
  trx: Knex,
  changes: readonly PlannedChange[],
): Promise<void> {
  const devices = movesOf(changes, 'devices');
  const sites = movesOf(changes, 'sites');
  if (devices.size + sites.size === 0) return;
  const open = await findOpenAt(trx, {
    deviceIds: [...devices.keys()],
    siteIds: [...sites.keys()],
  });
  const moved = open.flatMap((approval) => {
    const move = devices.get(approval.deviceId ?? '') ?? sites.get(approval.scopeSiteId ?? '');
    return move?.tenantId === approval.tenantId ? [{ approval, toSiteId: move.toSiteId }] : [];
  });
  if (moved.length === 0) return;
  const tenantAt = await tenantsOfSites(
    trx,
    changes,
    moved.flatMap(({ toSiteId }) => toSiteId ?? []),
  );
  const assigneesFor = await assigneesOf(
    trx,
    moved.map(({ approval }) => approval.id),
  );
  for (const { approval, toSiteId: target } of moved) {
    const { tenantId, scopeSiteId: fromSiteId } = approval;
    // Approvers at a site of another tenant do not decide here.
    const toSiteId = target !== null && tenantAt.get(target) === tenantId ? target : null;
    if (fromSiteId === toSiteId) continue;
    const { userIds: assignedUserIds, roleIds: assignedRoleIds } = assigneesFor(approval.id);
    work.audit('workflow.move', approvalSubject(approval), {
      before: { siteId: fromSiteId },
      after: { siteId: toSiteId },
      tenantId,
    });
    const data = {
      ...approvalEventData(approval),
      assignedUserIds,
      assignedRoleIds,
      fromSiteId,
      toSiteId,
    };
    work.emit('workflow.moved', approvalSubject(approval), data, { tenantId });
  }
}

/** The records that leave their site, or their tenant, by id. */
function movesOf(
  changes: readonly PlannedChange[],
  resource: 'devices' | 'sites',
): Map<string, Move> {
  const moves = new Map<string, Move>();
  for (const { resource: changed, id, before, after } of changes) {
    if (changed !== resource || !before || !after) continue;
    const { tenantId } = before;
    const stays = tenantId === after.tenantId;
    if (stays && (resource === 'sites' || before.siteId === after.siteId)) continue;
    moves.set(id, { tenantId, toSiteId: stays ? String(after.siteId) : null });
  }
  return moves;
}

/** The tenants of sites after the changes, by site. */
async function tenantsOfSites(
  trx: Knex,
  changes: readonly PlannedChange[],
  ids: readonly string[],
): Promise<Map<string, unknown>> {
  const rows = await trx('sites')
    .whereIn('id', ids)
    .select<{ id: string; tenantId: string }[]>('id', 'tenant_id AS tenantId');
  const tenants = new Map<string, unknown>(rows.map(({ id, tenantId }) => [id, tenantId]));
  for (const { resource, id, after } of changes)
    if (resource === 'sites' && after) tenants.set(id, after.tenantId);
  return tenants;
}
