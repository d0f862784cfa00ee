import { Type, type Static } from 'typebox';
import { SUPPORTED_EVENT_TYPES } from '../../domain/events/events.ts';
import { DELIVERY_STATUSES, DeliveryRetryPolicy, DISABLED_REASONS } from '../../domain/webhooks/webhooks.ts';
import { listOf, pageQuery } from '../http/pagination.ts';
import { TenantId } from '../access/schemas.ts';
import { Id, Nullable, Timestamp } from '../http/schemas.ts';

const closed = { additionalProperties: false };

const error = Type.Object({ code: Type.String(), message: Type.String() }, closed);

const AttemptRecord = Type.Object(
  {
    number: Type.Integer({ description: 'Counts from 1.' }),
    jobId: Id('job'),
    startedAt: Timestamp,
    finishedAt: Nullable(Timestamp),
    durationMs: Nullable(Type.Integer()),
    httpStatus: Nullable(Type.Integer()),
    error: Nullable(error),
    requestHeaders: Nullable(
      Type.Record(Type.String(), Type.String(), { description: 'Without the signature.' }),
    ),
    answer: Nullable(
      Type.String({
        description:
          'The first 4 KiB, as text with control characters escaped; in lists 200 characters. Show it as text: it comes from somebody else.',
      }),
    ),
    answerTruncated: Nullable(Type.Boolean()),
  },
  { title: 'DeliveryAttempt', ...closed },
);

export const DeliveryRecord = Type.Object(
  {
    id: Id('dlv'),
    tenantId: Type.String({ description: 'That of the webhook.' }),
    webhookId: Id('whk'),
    eventId: Id('evt'),
    eventType: Type.String(),
    sequence: Type.Integer(),
    status: Type.Enum([...DELIVERY_STATUSES]),
    reason: Nullable(Type.String({ description: 'Why it failed or was cancelled.' })),
    jobId: Nullable(Id('job')),
    workflowId: Nullable(
      Type.String({ description: 'null until its webhook has room for one more.' }),
    ),
    attemptCount: Type.Integer(),
    attempts: Type.Array(AttemptRecord, {
      description: 'Oldest first: of one delivery the last 20, in lists the last 5.',
    }),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { title: 'Delivery', ...closed },
);
export type DeliveryRecord = Static<typeof DeliveryRecord>;

const webhook = {
  id: Id('whk'),
  tenantId: Type.String(),
  endpointUrl: Type.String(),
  description: Type.String(),
  eventTypes: Type.Array(Type.String({ description: 'A type, or * for all.' })),
  enabled: Type.Boolean(),
  secret: Type.String({ description: 'Masked, but in the answer that makes it.' }),
  retryPolicy: DeliveryRetryPolicy,
  failingSince: Nullable(
    Type.String({ format: 'date-time', description: 'Since when no attempt has succeeded.' }),
  ),
  disabledAt: Nullable(Timestamp),
  disabledReason: Nullable(Type.Enum([...DISABLED_REASONS])),
  createdBy: Type.String(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  version: Type.Integer(),
};
export const WebhookRecord = Type.Object(webhook, { title: 'Webhook', ...closed });
export type WebhookRecord = Static<typeof WebhookRecord>;

export const WebhookWithDeliveries = Type.Object(
  {
    ...webhook,
    deliveries: Type.Array(DeliveryRecord, { description: 'Newest first.' }),
    nextCursor: Type.Union([Type.String(), Type.Null()], {
      description: 'Of the deliveries; null on the last page.',
    }),
  },
  { title: 'WebhookWithDeliveries', ...closed },
);

const EndpointUrl = Type.String({
  pattern: '^[Hh][Tt][Tt][Pp][Ss]?://[^/?#@\\\\\\s\\ud800-\\udfff]+([/?#][^\\s\\ud800-\\udfff]*)?$',
  maxLength: 2_048,
  examples: ['https://hooks.example.net/holdfast'],
  description:
    'http or https, without credentials. It must lead to a public address, or to one that the configuration allows.',
  'x-rule': 'must be an http or https URL without credentials',
});

/** One schema for both forms: a list of names, or `*`. */
const EventTypes = Type.Unsafe<string[] | string>({
  type: ['array', 'string'],
  items: { type: 'string', enum: [...SUPPORTED_EVENT_TYPES, '*'] },
  minItems: 1,
  maxItems: 500,
  pattern: '^\\*$',
  'x-rule': 'must be a list of event types, or *',
  description: 'Exact names, or * for all that there are and will be.',
  examples: [['job.failed']],
});

export const EventRecord = Type.Object(
  {
    id: Id('evt'),
    sequence: Type.Integer({
      description: 'Grows by one with each event of the installation, whatever its tenant.',
    }),
    type: Type.String(),
    tenantId: Type.String(),
    subject: Type.Object({ type: Type.String(), id: Type.String() }, closed),
    actorId: Type.String(),
    data: Type.Object(
      {},
      {
        additionalProperties: true,
        description: 'By type: `webhooks` of this document has the schemas.',
      },
    ),
    createdAt: Timestamp,
  },
  { title: 'Event', ...closed },
);
export type EventRecord = Static<typeof EventRecord>;

export const EventWithDeliveries = Type.Object(
  { ...EventRecord.properties, deliveries: Type.Array(DeliveryRecord) },
  { title: 'EventWithDeliveries', ...closed },
);

const Secret = Type.String({
  minLength: 1,
  maxLength: 256,
  description:
    'whsec_ and 24 to 64 bytes in base64, or a text of 24 to 64 bytes. Made up unless given.',
});
const fields = {
  endpointUrl: EndpointUrl,
  eventTypes: EventTypes,
  enabled: Type.Optional(Type.Boolean({ default: true })),
  secret: Type.Optional(Secret),
  description: Type.Optional(
    Type.String({ maxLength: 255, pattern: '^[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]*$' }),
  ),
  retryPolicy: Type.Optional(
    Type.Partial(DeliveryRetryPolicy, {
      ...closed,
      description: 'Shortens the plan: 0, 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h.',
    }),
  ),
};
export const WebhookRequest = Type.Object(fields, { title: 'WebhookRequest', ...closed });
export const WebhookChange = Type.Object(
  {
    endpointUrl: Type.Optional(EndpointUrl),
    eventTypes: Type.Optional(EventTypes),
    enabled: Type.Optional(Type.Boolean()),
    secret: Type.Optional(
      Type.String({
        ...Secret,
        description: 'The old one signs beside it for a day. ******** changes nothing.',
      }),
    ),
    description: fields.description,
    retryPolicy: fields.retryPolicy,
  },
  { title: 'WebhookChange', ...closed },
);
export const WebhookQuery = Type.Object(
  {
    enabled: Type.Optional(Type.Boolean()),
    eventType: Type.Optional(
      Type.Enum([...SUPPORTED_EVENT_TYPES], { description: 'Those that get this type.' }),
    ),
    tenantId: Type.Optional(TenantId()),
    ...pageQuery,
  },
  closed,
);
export const WebhookList = Type.Object(
  {
    ...listOf(WebhookRecord, 'WebhookList').properties,
    supportedEventTypes: Type.Array(Type.String()),
  },
  { title: 'WebhookList' },
);
export const DeliveryQuery = Type.Object(
  { status: Type.Optional(Type.Enum([...DELIVERY_STATUSES])), ...pageQuery },
  closed,
);
export const RotateRequest = Type.Object(
  { secret: Type.Optional(Secret) },
  { title: 'RotateSecretRequest', ...closed },
);
export const ReplayRequest = Type.Object(
  {
    afterSequence: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description: 'Events after this one.',
      }),
    ),
    since: Type.Optional(Type.String({ ...Timestamp, description: 'Events from this time on.' })),
  },
  { title: 'ReplayRequest', ...closed },
);
export const TestReport = Type.Object(
  {
    ok: Type.Boolean(),
    ...Type.Pick(AttemptRecord, [
      'durationMs',
      'httpStatus',
      'error',
      'requestHeaders',
      'answer',
      'answerTruncated',
    ]).properties,
    retryAfterMs: Nullable(Type.Number()),
  },
  { title: 'WebhookTestReport', ...closed },
);
export type DeliveryQuery = Static<typeof DeliveryQuery>;
export type ReplayRequest = Static<typeof ReplayRequest>;
