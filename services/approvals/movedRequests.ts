import type { Work } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { APPROVAL_SUMMARY_COLUMNS } from '../../db/approvals/approvals.ts';
import { Approval, ApprovalAssignee } from '../../db/models/Approval.ts';
import type { PlannedChange } from '../../domain/inventory/planSnapshot.ts';
import { approvalEventData, approvalSubject } from './approvalAudit.ts';

/** A device, or a site, that leaves a site of a tenant. `siteId`: where it is in the same tenant afterwards. */
type Move = { id: string; tenantId: unknown; siteId: string | null };

/**
 * Records which open requests follow a device to another site, or lose the site because it moves to another tenant:
 * others decide about them from now on. Call it before the changes are written.
 */
export async function recordMovedRequests(
  work: Work,
  trx: Knex,
  changes: readonly PlannedChange[],
): Promise<void> {
  const devices = await movesOf(trx, changes, 'devices');
  const sites = await movesOf(trx, changes, 'sites');
  if (devices.size + sites.size === 0) return;
  const open = await Approval.query(trx)
    .where((at) =>
      at.whereIn('device_id', [...devices.keys()]).orWhereIn('scope_site_id', [...sites.keys()]),
    )
    .where((is) => is.where({ status: 'pending' }).orWhereIn('execution', ['queued', 'running']))
    .select(...APPROVAL_SUMMARY_COLUMNS)
    .orderBy('id');
  for (const approval of open) {
    const move = devices.get(approval.deviceId ?? '') ?? sites.get(approval.scopeSiteId ?? '');
    const { tenantId, scopeSiteId: fromSiteId } = approval;
    const toSiteId = move?.siteId ?? null;
    if (move?.tenantId !== tenantId || fromSiteId === toSiteId) continue;
    const assignees = await ApprovalAssignee.query(trx).where({ approval_id: approval.id });
    const idsOf = (kind: string) =>
      assignees.filter((each) => each.kind === kind).map(({ assigneeId }) => assigneeId);
    work.audit('workflow.move', approvalSubject(approval), {
      before: { siteId: fromSiteId },
      after: { siteId: toSiteId },
      tenantId,
    });
    const data = {
      ...approvalEventData(approval),
      assignedUserIds: idsOf('user'),
      assignedRoleIds: idsOf('role'),
      fromSiteId,
      toSiteId,
    };
    work.emit('workflow.moved', approvalSubject(approval), data, { tenantId });
  }
}

/** The records that leave their site, or their tenant, by id. */
async function movesOf(
  trx: Knex,
  changes: readonly PlannedChange[],
  resource: 'devices' | 'sites',
): Promise<Map<string, Move>> {
  const moves = new Map<string, Move>();
  for (const { resource: changed, id, before, after } of changes) {
    if (changed !== resource || !before || !after) continue;
    const { tenantId } = before;
    const stays = tenantId === after.tenantId;
    if (stays && (resource === 'sites' || before.siteId === after.siteId)) continue;
    const siteId = stays ? await ownSite(trx, changes, String(after.siteId), tenantId) : null;
    moves.set(id, { id, tenantId, siteId });
  }
  return moves;
}

/** A site if it is of a tenant after the changes: approvers at a site of another tenant do not decide here. */
async function ownSite(
  trx: Knex,
  changes: readonly PlannedChange[],
  id: string,
  tenantId: unknown,
): Promise<string | null> {
  const changed = changes.find((each) => each.resource === 'sites' && each.id === id);
  const site =
    changed?.after ??
    (await trx('sites')
      .where({ id })
      .first<{ tenantId: string } | undefined>('tenant_id AS tenantId'));
  return site?.tenantId === tenantId ? id : null;
}
