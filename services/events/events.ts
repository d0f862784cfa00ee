import { listDeliveriesOfEvent, type DeliveryView } from '../../db/webhooks/deliveryViews.ts';
import {
  findEvent,
  listEvents,
  type EventFilter,
  type EventLogPage,
  type EventPageRequest,
} from '../../db/events/eventLog.ts';
import { lastPurgedSequence } from '../../db/retention/state.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { StoredEvent } from '../../domain/events/records.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { notFound } from '../../domain/shared/errors.ts';
import type { Access } from '../access/access.ts';
import type { EventStream, FollowEvents, FollowRequest } from './followEvents.ts';
import { assertNotPurged } from './purgedEvents.ts';
import type { EventRelay } from './relay.ts';

export type Events = ReturnType<typeof createEvents>;
export type { EventFilter, EventPageRequest } from '../../db/events/eventLog.ts';

/** An event with the deliveries that the caller may read. */
export type EventWithDeliveries = { event: StoredEvent; deliveries: DeliveryView[] };

/** The event log, as callers read it. */
export function createEvents({
  db,
  access,
  relay,
  followEvents,
}: {
  db: Knex;
  access: Access;
  relay: EventRelay;
  followEvents: FollowEvents;
}) {
  return {
    /**
     * One page of the events that the caller may read, including those committed before the call.
     * Error: `events_purged` for a page after a sequence, when events after it were purged.
     */
    async list(caller: Caller, filter: EventFilter, page: EventPageRequest): Promise<EventLogPage> {
      await relay.flush();
      const scope = access.scope(caller, 'event:read');
      const found = await listEvents(db, scope, filter, page);
      if (page.order === 'oldest') {
        // Read afterwards: what is purged in between must not be missed.
        assertNotPurged(page.after, await lastPurgedSequence(db, scope, filter.tenantId));
      }
      return found;
    },

    /**
     * The events that the caller may read, as they are published. Errors before the first item:
     * `events_purged`.
     */
    follow: (caller: Caller, request: FollowRequest, signal: AbortSignal): Promise<EventStream> =>
      followEvents(caller, request, signal),

    /**
     * An event with its deliveries to the webhooks of tenants where the caller may read events or
     * webhooks. Error: `not_found`.
     */
    async read(caller: Caller, id: string): Promise<EventWithDeliveries> {
      await relay.flush();
      const event = await findEvent(db, id, access.scope(caller, 'event:read'));
      if (!event) throw notFound('event', id);
      const scope = access.scope(caller, 'event:read', 'webhook:read');
      return { event, deliveries: await listDeliveriesOfEvent(db, id, scope) };
    },
  };
}
