import { Type, type Static } from 'typebox';
import { SUPPORTED_EVENT_TYPES } from '../../domain/events/events.ts';
import { TenantId } from '../access/schemas.ts';
import { listSchema, pageQuery } from '../http/pagination.ts';
import { Actor, Id, Name, Reference, Timestamp } from '../http/schemas.ts';
import { DeliveryRecord } from '../webhooks/schemas.ts';
import { COMMA_SEPARATED } from '../../platform/schemaCheck.ts';

const closed = { additionalProperties: false };

export const EventRecord = Type.Object(
  {
    id: Id('evt'),
    sequence: Type.Integer({
      description:
        'Position in the log. It increases by one with each event of the installation, ' +
        'including those of other tenants.',
    }),
    type: Type.String({ examples: ['job.failed'] }),
    tenantId: Reference('tenants'),
    subject: Type.Object(
      { type: Type.String({ examples: ['job'] }), id: Type.String() },
      {
        title: 'EventSubject',
        ...closed,
        description: 'The record that the event is about.',
        'x-subject': 'type',
      },
    ),
    actorId: Actor('The user or system component that caused the event.'),
    data: Type.Object(
      {},
      {
        additionalProperties: true,
        description: 'Depends on the type; `webhooks` of this document contains the schemas.',
      },
    ),
    createdAt: Timestamp,
  },
  { title: 'Event', ...closed },
);
export type EventRecord = Static<typeof EventRecord>;

export const EventWithDeliveries = Type.Object(
  {
    ...EventRecord.properties,
    deliveries: Type.Array(DeliveryRecord, {
      description:
        'One per webhook, newest first. Those to webhooks of tenants where you may read events or webhooks.',
    }),
  },
  { title: 'EventWithDeliveries', ...closed },
);
export type EventWithDeliveries = Static<typeof EventWithDeliveries>;

export const EventQuery = Type.Object(
  {
    type: Type.Optional(
      Type.Array(Type.Enum([...SUPPORTED_EVENT_TYPES], { title: 'EventType' }), {
        maxItems: 50,
        [COMMA_SEPARATED]: true,
        description: 'Event types to include; may be repeated. Default: all.',
      }),
    ),
    after: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description:
          'A sequence. Lists the events after it, oldest first. No event with a smaller ' +
          'sequence appears later.',
      }),
    ),
    subject: Type.Optional(
      Name({
        description: 'The id of a record, or its type and id as type:id.',
        examples: ['job:job_01jd0cmxk5e5v8kyzwq0q8s3rt'],
      }),
    ),
    tenantId: Type.Optional(TenantId()),
    since: Type.Optional(
      Type.String({ ...Timestamp, description: 'Events created then or later.' }),
    ),
    until: Type.Optional(Type.String({ ...Timestamp, description: 'Events created before then.' })),
    follow: Type.Optional(
      Type.Boolean({
        description:
          'Streams the events after `after` as server-sent events, as they are published. Without ' +
          '`after`, those that are published from now on. `cursor` is refused, `limit` has no effect.',
      }),
    ),
    ...pageQuery,
  },
  closed,
);
export type EventQuery = Static<typeof EventQuery>;

export const EventList = Type.Object(
  {
    ...listSchema(EventRecord, 'EventList').properties,
    lastSequence: Type.Integer({
      description:
        'The response covers the log up to this sequence. Pass it as `after` to continue.',
    }),
  },
  { title: 'EventList' },
);
export type EventList = {
  items: EventRecord[];
  nextCursor: string | null;
  lastSequence: number;
};
