import { Type, type Static } from 'typebox';
import { SUPPORTED_EVENT_TYPES } from '../../domain/events.ts';
import { DELIVERY_STATUSES, DeliveryRetryPolicy, DISABLED_REASONS } from '../../domain/webhooks.ts';
import { Id, Nullable, Timestamp } from './common.ts';

const closed = { additionalProperties: false };

const error = Type.Object({ code: Type.String(), message: Type.String() }, closed);

export const AttemptRecord = Type.Object(
  {
    number: Type.Integer({ description: 'Counts from 1.' }), jobId: Id('job'), startedAt: Timestamp, finishedAt: Nullable(Timestamp),
    durationMs: Nullable(Type.Integer()), httpStatus: Nullable(Type.Integer()), error: Nullable(error),
    requestHeaders: Nullable(Type.Record(Type.String(), Type.String(), { description: 'Without the signature.' })),
    answer: Nullable(Type.String({ description: 'The first 4 KiB, as text with control characters escaped. Show it as text: it comes from somebody else.' })),
    answerTruncated: Nullable(Type.Boolean()),
  },
  { title: 'DeliveryAttempt', ...closed },
);

export const DeliveryRecord = Type.Object(
  {
    id: Id('dlv'), tenantId: Type.String({ description: 'That of the webhook.' }), webhookId: Id('whk'), eventId: Id('evt'), eventType: Type.String(),
    sequence: Type.Integer(), status: Type.Enum([...DELIVERY_STATUSES]),
    reason: Nullable(Type.String({ description: 'Why it failed or was cancelled.' })),
    jobId: Nullable(Id('job')), workflowId: Nullable(Type.String({ description: 'null until its webhook has room for one more.' })),
    attemptCount: Type.Integer(), attempts: Type.Array(AttemptRecord, { description: 'The last 20, oldest first.' }),
    createdAt: Timestamp, updatedAt: Timestamp,
  },
  { title: 'Delivery', ...closed },
);
export type DeliveryRecord = Static<typeof DeliveryRecord>;

const webhook = {
  id: Id('whk'), tenantId: Type.String(), endpointUrl: Type.String(), description: Type.String(),
  eventTypes: Type.Array(Type.String({ description: 'A type, or * for all.' })), enabled: Type.Boolean(),
  secret: Type.String({ description: 'Masked, but in the answer that makes it.' }),
  retryPolicy: DeliveryRetryPolicy,
  failingSince: Nullable(Type.String({ format: 'date-time', description: 'Since when no attempt has succeeded.' })),
  disabledAt: Nullable(Timestamp), disabledReason: Nullable(Type.Enum([...DISABLED_REASONS])),
  createdBy: Type.String(), createdAt: Timestamp, updatedAt: Timestamp, version: Type.Integer(),
};
export const WebhookRecord = Type.Object(webhook, { title: 'Webhook', ...closed });
export type WebhookRecord = Static<typeof WebhookRecord>;

export const WebhookWithDeliveries = Type.Object(
  {
    ...webhook, deliveries: Type.Array(DeliveryRecord, { description: 'Newest first.' }),
    nextCursor: Type.Union([Type.String(), Type.Null()], { description: 'Of the deliveries; null on the last page.' }),
  },
  { title: 'WebhookWithDeliveries', ...closed },
);

export const EndpointUrl = Type.String({
  pattern: '^[Hh][Tt][Tt][Pp][Ss]?://[^/?#@\\\\\\s]+([/?#]\\S*)?$', maxLength: 2_048, examples: ['https://hooks.example.net/holdfast'],
  description: 'http or https, without credentials. It must lead to a public address, or to one that the configuration allows.',
  'x-rule': 'must be an http or https URL without credentials',
});

/** One schema for both forms: a list of names, or `*`. */
export const EventTypes = Type.Unsafe<string[] | string>({
  type: ['array', 'string'], items: { type: 'string', enum: [...SUPPORTED_EVENT_TYPES, '*'] }, minItems: 1, maxItems: 500, pattern: '^\\*$',
  'x-rule': 'must be a list of event types, or *', description: 'Exact names, or * for all that there are and will be.', examples: [['job.failed']],
});

export const EventRecord = Type.Object(
  {
    id: Id('evt'), sequence: Type.Integer({ description: 'Grows by one with each event of the installation, whatever its tenant.' }),
    type: Type.String(), tenantId: Type.String(), subject: Type.Object({ type: Type.String(), id: Type.String() }, closed), actorId: Type.String(),
    data: Type.Object({}, { additionalProperties: true, description: 'By type: `webhooks` of this document has the schemas.' }), createdAt: Timestamp,
  },
  { title: 'Event', ...closed },
);
export type EventRecord = Static<typeof EventRecord>;

export const EventWithDeliveries = Type.Object(
  { ...EventRecord.properties, deliveries: Type.Array(DeliveryRecord) }, { title: 'EventWithDeliveries', ...closed },
);
