import { listDeliveriesOfEvent, type DeliveryView } from '../../db/webhooks/deliveryViews.ts';
import {
  countEvents,
  findEvent,
  listEvents,
  type EventPageRequest,
} from '../../db/events/eventLog.ts';
import { lastPurgedSequence } from '../../db/retention/state.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { StoredEvent } from '../../domain/events/records.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { notFound } from '../../domain/shared/errors.ts';
import type { ListAnswer, ListRequest } from '../../domain/shared/lists.ts';
import type { Access } from '../access/access.ts';
import type { EventStream, FollowEvents, FollowRequest } from './followEvents.ts';
import { onlyTenantOf } from './eventFilter.ts';
import { assertKnown, assertNotPurged } from './purgedEvents.ts';
import type { EventRelay } from './relay.ts';

export type Events = ReturnType<typeof createEvents>;
export type { EventFilter } from '../../db/events/eventLog.ts';

/** An event with the deliveries that the caller may read. */
export type EventWithDeliveries = { event: StoredEvent; deliveries: DeliveryView[] };

/** A page, and the sequence up to which it covers the log. */
export type EventAnswer = ListAnswer<StoredEvent> & { lastSequence: number };

function pageRequestFrom(
  { limit, sort, after: key }: ListRequest,
  after: number | undefined,
): EventPageRequest {
  const previous = key && Number(key.value);
  return sort?.descending === false
    ? { limit, order: 'oldest', after: previous ?? after ?? 0 }
    : { limit, order: 'newest', before: previous };
}

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
     * One page of the events that the caller may read, including those committed before the call;
     * with `after`, those after that sequence. Error: `events_purged` if events after it are purged, or
     * lost in a restore; with `after`, `permission_denied` if the caller holds the permission at no tenant.
     */
    async list(
      caller: Caller,
      { filter, after }: FollowRequest,
      request: ListRequest,
    ): Promise<EventAnswer> {
      if (after !== undefined) await access.requireAtSomeTenant(caller, 'event:read');
      await relay.flush();
      if (after !== undefined) await assertKnown(db, after);
      const scope = access.scope(caller, 'event:read');
      const page = pageRequestFrom(request, after);
      const { items, nextKey, lastSequence, head } = await listEvents(db, scope, filter, page);
      if (page.order === 'oldest' && after !== undefined) {
        // Read afterwards: what is purged in between must not be missed.
        assertNotPurged(page.after, await lastPurgedSequence(db, scope, onlyTenantOf(filter)));
      }
      const asked = { filter, after: after ?? 0, head };
      const last = items.at(-1);
      return {
        items,
        next: nextKey !== null && last ? { value: nextKey, id: last.id } : null,
        lastSequence,
        ...(await countEvents(db, scope, asked, request)),
      };
    },

    /**
     * The events that the caller may read, as they are published. Errors before the first item:
     * `events_purged`, `permission_denied` as above.
     */
    async follow(
      caller: Caller,
      request: FollowRequest,
      signal: AbortSignal,
    ): Promise<EventStream> {
      await access.requireAtSomeTenant(caller, 'event:read');
      return followEvents(caller, request, signal);
    },

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
