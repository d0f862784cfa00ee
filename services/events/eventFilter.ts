import type { EventFilter } from '../../db/events/eventLog.ts';
import { covers, type Scope } from '../../domain/access/scope.ts';
import type { StoredEvent } from '../../domain/events/records.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { satisfies, type ListCondition } from '../../domain/shared/lists.ts';

/** The value of each field that lists filter by. */
const VALUES: Readonly<Record<string, (event: StoredEvent) => string | number>> = {
  type: ({ type }) => type,
  tenantId: ({ tenantId }) => tenantId,
  createdAt: ({ createdAt }) => createdAt.getTime(),
};

function conditionOn(condition: ListCondition): (event: StoredEvent) => boolean {
  const valueOf = assertDefined(VALUES[condition.field], `field ${condition.field} of events`);
  return (event) => satisfies(condition, valueOf(event));
}

/** True for the events that a list with this scope and filter contains. */
export function eventMatcher(
  scope: Scope,
  { where, subjectType, subjectId }: EventFilter,
): (event: StoredEvent) => boolean {
  const conditions = where.map(conditionOn);
  return (event) =>
    covers(scope, { tenantId: event.tenantId }) &&
    (subjectType === undefined || event.subjectType === subjectType) &&
    (subjectId === undefined || event.subjectId === subjectId) &&
    conditions.every((isTrue) => isTrue(event));
}

/** The tenant that a filter asks for, if it is only one. */
export function onlyTenantOf({ where }: EventFilter): string | undefined {
  const asked = where.find(({ field, operator }) => field === 'tenantId' && operator === 'in');
  const [tenantId, ...others] = asked?.values ?? [];
  return others.length === 0 && typeof tenantId === 'string' ? tenantId : undefined;
}
