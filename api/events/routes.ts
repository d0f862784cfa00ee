import { Type } from 'typebox';
import { invalidField } from '../../domain/shared/errors.ts';
import type { Slots } from '../../platform/slots.ts';
import type { EventFilter, Events } from '../../services/events/events.ts';
import { createEventStreams, EVENT_STREAM } from '../http/eventStream.ts';
import { ok } from '../http/response.ts';
import { route, type Route } from '../http/route.ts';
import { closed, Id } from '../http/schemas.ts';
import { deliveryRecord } from '../webhooks/presenter.ts';
import { eventRecord, streamMessages } from './presenter.ts';
import { EVENTS, EventWithDeliveries } from './schemas.ts';

const tag = 'Events';

const SEQUENCE = /^\d{1,16}$/;

type EventQuery = Record<string, unknown> & {
  after?: number;
  follow?: boolean;
  subject?: string;
};

function toFilter(query: EventQuery): EventFilter {
  const { subject } = query;
  const [, subjectType, subjectId] = /^(?:([a-z][a-z._-]*):)?(.+)$/.exec(subject ?? '') ?? [];
  if (subject?.endsWith(':'))
    throw invalidField(
      'query',
      '/subject',
      'format',
      'must be an id, or a type and an id as type:id',
    );
  return {
    where: EVENTS.conditionsFrom(query),
    ...(subjectType !== undefined && { subjectType }),
    ...(subjectId !== undefined && { subjectId }),
  };
}

/** What only pages have, and upper bounds of times: events that were committed earlier may be published later. */
const NOT_WITH_FOLLOW = [
  ...['limit', 'cursor', 'sort', 'fields', 'count', 'facets'],
  ...['until', 'createdAt.lt', 'createdAt.lte'],
];

/** Where a stream begins. What the client has received counts more than what it asked for first. */
function followAfter({ after }: EventQuery, lastEventId: string | undefined) {
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
        'twice. `until` and upper bounds of `createdAt` are not accepted: a stream has no end. It ends with `permission_denied` when the tenants that you may read change. A stream that ends because of an error has `error` with a problem as its last message. ' +
        '410 `events_purged`: events after that sequence are purged, or lost in a restore.',
      problems: [410],
      query: EVENTS.query,
      headers: ['Last-Event-ID'],
      responses: { 200: EVENTS.schema },
      produces: [EVENT_STREAM],
      notWithFollow: NOT_WITH_FOLLOW,
      keepsScope: true,
      handle: ({ caller, query: asked, header, signal }) => {
        const query: EventQuery = asked;
        if (query.follow) {
          const after = followAfter(query, header('last-event-id'));
          const filter = toFilter(query);
          return streams.open(caller, async () => {
            const { items, ...stream } = await events.follow(caller, { filter, after }, signal);
            return { messages: streamMessages(items), ...stream };
          });
        }
        const { after } = query;
        return EVENTS.respond(
          after === undefined ? query : { ...query, sort: 'sequence' },
          (request) => events.list(caller, { filter: toFilter(query), after }, request),
          eventRecord,
          ({ lastSequence }) => ({ lastSequence }),
        );
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
