import type { Work } from '../../db/commit.ts';
import type { EventType } from '../../domain/events/events.ts';
import { differences } from '../../domain/inventory/difference.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { labelOf, placeOf } from '../../domain/inventory/standing.ts';
import type { Change } from '../../domain/inventory/planSnapshot.ts';
import type { DispatchTask } from '../../temporal/contracts.ts';

/** The trail of a record's change: the audit entry, which is its history, and the event. */
export function noteChange(
  work: Work<DispatchTask>,
  { resource: name, id, before, after }: Change,
): void {
  const resource = RESOURCES[name];
  const now = after ?? before;
  if (!now) return;
  const verb = after ? (before ? 'update' : 'create') : 'delete';
  const { tenantId, siteId = null } = placeOf(resource, now);
  const subject = { type: resource.kind, id };
  work.audit(`inventory.${resource.kind}.${verb}`, subject, {
    ...(before && { before }),
    ...(after && { after }),
    tenantId,
  });
  const data = {
    recordId: id,
    label: labelOf(resource, now),
    siteId,
    version: now.version,
    changed: before && after ? differences(before, after).map(({ field }) => field) : [],
  };
  work.emit(
    `inventory.${resource.kind}.${verb}d` as EventType & `inventory.${string}`,
    subject,
    data,
    tenantId,
  );
}
