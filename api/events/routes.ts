import { Type } from 'typebox';
import { invalidField } from '../../domain/shared/errors.ts';
import type { Slots } from '../../platform/slots.ts';
import type { EventFilter, EventPageRequest, Events } from '../../services/events/events.ts';
import { createEventStreams, EVENT_STREAM } from '../http/eventStream.ts';
import { ok } from '../http/response.ts';
import { decodeCursor, encodeCursor } from '../http/pagination.ts';
import { parseTime } from '../http/queryTime.ts';
import { route, type Route } from '../http/route.ts';
import { Id } from '../http/schemas.ts';
import { deliveryRecord } from '../webhooks/presenter.ts';
import { eventRecord, streamMessages } from './presenter.ts';
import { EventList, EventQuery, EventWithDeliveries } from './schemas.ts';

const tag = 'Events';
const closed = { additionalProperties: false };

/** The two orders are different lists, so that a cursor of one is refused by the other. */
const CURSOR_LISTS = { oldest: 'events-after', newest: 'events' } as const;
const SEQUENCE = /^\d{1,16}$/;

function toPageRequest({ limit, after, cursor }: EventQuery): EventPageRequest {
  if (after === undefined) {
    const before = decodeCursor(CURSOR_LISTS.newest, cursor, SEQUENCE);
    return { limit, order: 'newest', before: before === undefined ? undefined : Number(before) };
  }
  return {
    limit,
    order: 'oldest',
    after: Number(decodeCursor(CURSOR_LISTS.oldest, cursor, SEQUENCE) ?? after),
  };
}

function toFilter({ type, subject, tenantId, since, until }: EventQuery): EventFilter {
  const [, subjectType, subjectId] = /^(?:([a-z][a-z._-]*):)?(.+)$/.exec(subject ?? '') ?? [];
  if (subject?.endsWith(':'))
    throw invalidField(
      'query',
      '/subject',
      'format',
      'must be an id, or a type and an id as type:id',
    );
  return {
    ...(type && { type }),
    ...(tenantId !== undefined && { tenantId }),
    ...(subjectType !== undefined && { subjectType }),
    ...(subjectId !== undefined && { subjectId }),
    ...(since !== undefined && { since: parseTime('since', since) }),
    ...(until !== undefined && { until: parseTime('until', until) }),
  };
}

/** Where a stream begins. What the client has received counts more than what it asked for first. */
function followAfter({ after, cursor }: EventQuery, lastEventId: string | undefined) {
  if (cursor !== undefined)
    throw invalidField('query', '/cursor', 'notAllowed', 'must not be combined with follow');
  if (lastEventId === undefined) return after;
  if (!SEQUENCE.test(lastEventId))
    throw invalidField('header', '/Last-Event-ID', 'format', 'must be a sequence');
  return Number(lastEventId);
}

/** Routes that read the event log. */
export function eventRoutes(events: Events, streamSlots: Slots): Route[] {
  const streams = createEventStreams(streamSlots);
  return [
    route({
      method: 'GET',
      path: '/api/events',
      tag,
      permission: 'event:read',
      requiresTenantHeader: true,
      operationId: 'listEvents',
      summary: 'List events',
      description:
        'Newest first, or with `after` oldest first. To follow the log, pass `lastSequence` of ' +
        'the response as `after` of the next request: no event is missed. With `follow`, a stream of ' +
        'server-sent events: `event` for each event, with its sequence as the event id. A message ' +
        'with an id only, at the beginning and every 10 s, says up to where the stream is complete. A ' +
        'client that connects again with the last id as `Last-Event-ID` misses nothing and gets nothing ' +
        'twice. A stream that ends because of an error has `error` with a problem as its last message. ' +
        '410 `events_purged`: events after that sequence are purged.',
      problems: [410],
      query: EventQuery,
      headers: ['Last-Event-ID'],
      responses: { 200: EventList },
      produces: [EVENT_STREAM],
      handle: async ({ caller, query, header, signal }) => {
        if (query.follow) {
          const after = followAfter(query, header('last-event-id'));
          const filter = toFilter(query);
          return streams.open(caller, async () => {
            const { items, ...stream } = await events.follow(caller, { filter, after }, signal);
            return { messages: streamMessages(items), ...stream };
          });
        }
        const page = toPageRequest(query);
        const { items, nextKey, lastSequence } = await events.list(caller, toFilter(query), page);
        return ok({
          items: items.map(eventRecord),
          nextCursor: nextKey === null ? null : encodeCursor(CURSOR_LISTS[page.order], nextKey),
          lastSequence,
        });
      },
    }),
    route({
      method: 'GET',
      path: '/api/events/{id}',
      tag,
      permission: 'event:read',
      requiresTenantHeader: true,
      operationId: 'getEvent',
      summary: 'Get an event with its deliveries',
      params: Type.Object({ id: Id('evt') }, closed),
      responses: { 200: EventWithDeliveries },
      handle: async ({ caller, params }) => {
        const { event, deliveries } = await events.read(caller, params.id);
        return ok({ ...eventRecord(event), deliveries: deliveries.map(deliveryRecord) });
      },
    }),
  ];
}
