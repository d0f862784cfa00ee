import type { Work } from '../../db/core/commit.ts';
import type { EventType } from '../../domain/events/events.ts';
import { differences } from '../../domain/inventory/difference.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { labelOf, resourceScopeOf } from '../../domain/inventory/ownership.ts';
import type { PlannedChange } from '../../domain/inventory/planSnapshot.ts';

/**
 * Records a change: the audit entry, which is also the history of the record, and the event. Both
 * belong to the tenant of the record.
 */
export function recordChange(
  work: Work,
  { resource: name, id, before, after }: PlannedChange,
): void {
  const resource = RESOURCES[name];
  const row = after ?? before;
  if (!row) return;
  const verb = after ? (before ? 'update' : 'create') : 'delete';
  const { tenantId, siteId = null } = resourceScopeOf(resource, row);
  const subject = { type: resource.kind, id };
  work.audit(`inventory.${resource.kind}.${verb}`, subject, {
    ...(before && { before }),
    ...(after && { after }),
    tenantId,
  });
  const data = {
    recordId: id,
    label: labelOf(resource, row),
    siteId,
    version: row.version,
    changed: before && after ? differences(before, after).map(({ field }) => field) : [],
  };
  work.emit(
    `inventory.${resource.kind}.${verb}d` as EventType & `inventory.${string}`,
    subject,
    data,
    tenantId,
  );
}
