import { Type, type Static } from 'typebox';
import { SUPPORTED_EVENT_TYPES } from '../../domain/events/events.ts';
import { choiceField, declareField, idField, timeField } from '../http/listFields.ts';
import { defineList } from '../http/lists.ts';
import {
  Actor,
  closed,
  Id,
  Name,
  Position,
  Reference,
  TenantId,
  Timestamp,
} from '../http/schemas.ts';
import { DeliveryRecord } from '../webhooks/schemas.ts';

export const EventRecord = Type.Object(
  {
    id: Id('evt'),
    sequence: Type.Integer({
      description:
        'Position in the log. It increases by one with each event of the installation, ' +
        'including those of other tenants, and by much more when the database was restored to an ' +
        'earlier time, or a standby was promoted.',
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

export const EVENTS = defineList({
  name: 'events',
  id: 'evt',
  item: EventRecord,
  title: 'EventList',
  fields: {
    type: choiceField(SUPPORTED_EVENT_TYPES, {
      title: 'EventType',
      description: 'Event types to include. Default: all.',
    }),
    tenantId: idField(TenantId()),
    sequence: declareField('bigint', Type.Integer(), { filter: false, sort: true }),
    createdAt: timeField(),
  },
  own: {
    after: Type.Optional(
      Position(
        'A sequence. Lists the events after it, oldest first whatever `sort` is. No event with a ' +
          'smaller sequence appears later.',
      ),
    ),
    subject: Type.Optional(
      Name({
        description: 'The id of a record, or its type and id as type:id.',
        examples: ['job:job_01jd0cmxk5e5v8kyzwq0q8s3rt'],
      }),
    ),
    since: Type.Optional(
      Type.String({ ...Timestamp, description: 'Events created then or later.' }),
    ),
    until: Type.Optional(Type.String({ ...Timestamp, description: 'Events created before then.' })),
    follow: Type.Optional(
      Type.Boolean({
        description:
          'Streams the events after `after` as server-sent events, as they are published. Without ' +
          '`after`, those that are published from now on. `limit`, `cursor`, `sort`, `fields`, `count` and `facets` are refused.',
      }),
    ),
  },
  aliases: { since: 'createdAt.gte', until: 'createdAt.lt' },
  idTime: null,
  defaultSort: '-sequence',
  more: {
    lastSequence: Type.Integer({
      description:
        'The response covers the log up to this sequence. Pass it as `after` to continue.',
    }),
  },
});

export type EventList = {
  items: EventRecord[];
  nextCursor: string | null;
  lastSequence: number;
};
