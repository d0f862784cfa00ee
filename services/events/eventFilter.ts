import type { EventFilter } from '../../db/events/eventLog.ts';
import { covers, type Scope } from '../../domain/access/scope.ts';
import type { StoredEvent } from '../../domain/events/records.ts';

type Field = keyof EventFilter;
type Wanted<F extends Field> = NonNullable<EventFilter[F]>;

/** What `listEvents` asks in SQL, for one event: every field of a filter has its condition. */
const CONDITIONS: { [F in Field]: (event: StoredEvent, wanted: Wanted<F>) => boolean } = {
  type: (event, types) => types.includes(event.type),
  subjectType: (event, type) => event.subjectType === type,
  subjectId: (event, id) => event.subjectId === id,
  tenantId: (event, id) => event.tenantId === id,
  since: (event, time) => event.createdAt >= time,
  until: (event, time) => event.createdAt < time,
};

const holds = <F extends Field>(field: F, wanted: Wanted<F>, event: StoredEvent): boolean =>
  CONDITIONS[field](event, wanted);

/** True for the events that a list with this scope and filter contains. */
export function eventMatcher(scope: Scope, filter: EventFilter): (event: StoredEvent) => boolean {
  const conditions = (Object.keys(CONDITIONS) as Field[]).flatMap((field) => {
    const wanted = filter[field];
    return wanted === undefined ? [] : [(event: StoredEvent) => holds(field, wanted, event)];
  });
  return (event) =>
    covers(scope, { tenantId: event.tenantId }) && conditions.every((isTrue) => isTrue(event));
}
