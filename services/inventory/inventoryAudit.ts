import { covers, type Scope } from '../../domain/access/scope.ts';
import { OTHER_TENANT, type Actor } from '../../domain/shared/caller.ts';
import type { PlanOutcome } from './planner.ts';
import type { Work } from '../../db/core/commit.ts';
import type { EventType } from '../../domain/events/events.ts';
import { differences } from '../../domain/inventory/difference.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { labelOf, resourceScopeOf, tenantOf } from '../../domain/inventory/ownership.ts';
import type { PlannedChange } from '../../domain/inventory/planSnapshot.ts';

/**
 * Records the changes of plans. Those of records in tenants that the plans do not name and that the
 * caller may not write show no actor: the owner of a record has detached them from it.
 */
export function recordChanges(
  work: Work,
  { planned, changes }: PlanOutcome,
  writeScope: Scope,
): void {
  const named = new Set(
    planned.flatMap(({ subject }) =>
      subject
        ? [subject.before, subject.after].flatMap((row) =>
            row ? [tenantOf(RESOURCES[subject.resource], row)] : [],
          )
        : [],
    ),
  );
  for (const change of changes)
    for (const part of partsOf(change)) {
      const row = part.before ?? part.after;
      const tenantId = row ? tenantOf(RESOURCES[part.resource], row) : '';
      const isOwn = named.has(tenantId) || covers(writeScope, { tenantId });
      recordChange(work, part, changedFields(change), isOwn ? undefined : OTHER_TENANT);
    }
}

/**
 * A change as the tenants concerned see it: a record that moves to another tenant is deleted in the
 * one and created in the other (docs/adr/0078-a-move-is-seen-in-both-tenants.md).
 */
function partsOf(change: PlannedChange): PlannedChange[] {
  const { resource, before, after } = change;
  if (!before || !after) return [change];
  if (tenantOf(RESOURCES[resource], before) === tenantOf(RESOURCES[resource], after))
    return [change];
  return [
    { ...change, after: null },
    { ...change, before: null },
  ];
}

const changedFields = ({ before, after }: PlannedChange): string[] =>
  before && after ? differences(before, after).map(({ field }) => field) : [];

/**
 * Records a change: the audit entry, which is also the history of the record, and the event. Both
 * belong to the tenant of the record.
 */
function recordChange(
  work: Work,
  { resource: name, id, before, after }: PlannedChange,
  changed: string[],
  actor: Actor | undefined,
): void {
  const resource = RESOURCES[name];
  const row = after ?? before;
  if (!row) return;
  const verb = after ? (before ? 'update' : 'create') : 'delete';
  const { tenantId, siteId = null } = resourceScopeOf(resource, row);
  const subject = { type: resource.kind, id };
  // What a record was at a time is read from its entries.
  const notBefore = new Date(Date.parse(String(row.updatedAt)) + (after ? 0 : 1));
  work.audit(`inventory.${resource.kind}.${verb}`, subject, {
    before,
    after,
    tenantId,
    actor,
    notBefore,
  });
  const data = {
    recordId: id,
    label: labelOf(resource, row),
    siteId,
    version: row.version,
    changed,
  };
  work.emit(
    `inventory.${resource.kind}.${verb}d` as EventType & `inventory.${string}`,
    subject,
    data,
    { tenantId, actor },
  );
}
