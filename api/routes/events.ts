import { Type, type Static } from 'typebox';
import { invalidField } from '../../domain/shared/errors.ts';
import { SUPPORTED_EVENT_TYPES } from '../../domain/events/events.ts';
import type { EventFilter, EventPage, Events } from '../../services/events.ts';
import { ok } from '../kit/answer.ts';
import { decodeCursor, encodeCursor, listOf, pageQuery } from '../http/pagination.ts';
import { dateOf } from '../kit/queryTime.ts';
import { route, type Route } from '../kit/route.ts';
import { deliveryRecord, eventRecord } from '../presenters/webhooks.ts';
import { TenantId } from '../access/schemas.ts';
import { Id, Name, Timestamp } from '../http/schemas.ts';
import { EventRecord, EventWithDeliveries } from '../webhooks/schemas.ts';

const area = 'Events';
const closed = { additionalProperties: false };

const EventQuery = Type.Object(
  {
    type: Type.Optional(Type.Array(Type.Enum([...SUPPORTED_EVENT_TYPES]), { maxItems: 50 })),
    after: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description:
          'A sequence: later events, oldest first. What is read so is never followed by a smaller one.',
      }),
    ),
    subject: Type.Optional(
      Name({
        description: 'The id of a record, or its type and id as type:id.',
        examples: ['job:job_01jd0cmxk5e5v8kyzwq0q8s3rt'],
      }),
    ),
    tenantId: Type.Optional(TenantId()),
    since: Type.Optional(Timestamp),
    until: Type.Optional(Timestamp),
    ...pageQuery,
  },
  closed,
);
type EventQuery = Static<typeof EventQuery>;

const EventList = Type.Object(
  {
    ...listOf(EventRecord, 'EventList').properties,
    lastSequence: Type.Integer({
      description: 'Up to there this answer is complete: the next `after` of who follows the log.',
    }),
  },
  { title: 'EventList' },
);

/** Cursors of both orders are those of different lists. */
const LISTS = { oldest: 'events-after', newest: 'events' } as const;
const SEQUENCE = /^\d{1,16}$/;

function pageOf({ limit, after, cursor }: EventQuery): EventPage {
  if (after === undefined) {
    const before = decodeCursor(LISTS.newest, cursor, SEQUENCE);
    return { limit, order: 'newest', before: before === undefined ? undefined : Number(before) };
  }
  return {
    limit,
    order: 'oldest',
    after: Number(decodeCursor(LISTS.oldest, cursor, SEQUENCE) ?? after),
  };
}

function filterOf({ type, subject, tenantId, since, until }: EventQuery): EventFilter {
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
    ...(since !== undefined && { since: dateOf('since', since) }),
    ...(until !== undefined && { until: dateOf('until', until) }),
  };
}

/** What happened. */
export const eventRoutes = (events: Events): Route[] => [
  route({
    method: 'GET',
    path: '/api/events',
    area,
    permission: 'event:read',
    tenantNamed: true,
    summary: 'List events, newest first, or after a sequence, oldest first',
    query: EventQuery,
    answers: { 200: EventList },
    handle: async ({ caller, query }) => {
      const page = pageOf(query);
      const { items, nextKey, lastSequence } = await events.list(caller, filterOf(query), page);
      return ok({
        items: items.map(eventRecord),
        nextCursor: nextKey === null ? null : encodeCursor(LISTS[page.order], nextKey),
        lastSequence,
      });
    },
  }),
  route({
    method: 'GET',
    path: '/api/events/{id}',
    area,
    permission: 'event:read',
    tenantNamed: true,
    summary: 'Read an event with its deliveries',
    params: Type.Object({ id: Id('evt') }, closed),
    answers: { 200: EventWithDeliveries },
    handle: async ({ caller, params }) => {
      const { event, deliveries } = await events.read(caller, params.id);
      return ok({ ...eventRecord(event), deliveries: deliveries.map(deliveryRecord) });
    },
  }),
];
