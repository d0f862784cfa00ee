import { deliveriesOf, type DeliveryView } from '../db/webhooks/deliveryViews.ts';
import {
  pageOfEvents,
  type EventFilter,
  type EventLogPage,
  type EventPage,
} from '../db/eventLog.ts';
import type { Knex } from '../db/core/knex.ts';
import { Event } from '../db/models/Event.ts';
import { whereInScope } from '../db/core/scopeSql.ts';
import type { Caller } from '../domain/shared/caller.ts';
import { notFound } from '../domain/shared/errors.ts';
import type { Access } from './access.ts';
import type { EventRelay } from './eventRelay.ts';

export type Events = ReturnType<typeof createEvents>;
export type { EventFilter, EventPage } from '../db/eventLog.ts';

/** An event with the deliveries that the caller may see. */
export type EventWithDeliveries = { event: Event; deliveries: DeliveryView[] };

/** The log of what happened, as callers read it. */
export function createEvents({
  db,
  access,
  relay,
}: {
  db: Knex;
  access: Access;
  relay: EventRelay;
}) {
  return {
    /** Events inside the caller's scope. What was committed before the call is in it. */
    async list(caller: Caller, filter: EventFilter, page: EventPage): Promise<EventLogPage> {
      await relay.flush();
      return pageOfEvents(db, access.scope(caller, 'event:read'), filter, page);
    },

    /** Error: `not_found`. */
    async read(caller: Caller, id: string): Promise<EventWithDeliveries> {
      await relay.flush();
      const query = Event.query(db).findById(id).whereNotNull('sequence');
      whereInScope(query, access.scope(caller, 'event:read'));
      const event = await query;
      if (!event) throw notFound('event', id);
      return {
        event,
        deliveries: await deliveriesOf(db, id, access.scope(caller, 'webhook:read')),
      };
    },
  };
}
