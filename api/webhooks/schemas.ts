import { Type, type Static } from 'typebox';
import { SUPPORTED_EVENT_TYPES } from '../../domain/events/events.ts';
import {
  DELIVERY_STATUSES,
  DeliveryRetryPolicy,
  DISABLED_REASONS,
} from '../../domain/webhooks/webhooks.ts';
import {
  choiceField,
  flagField,
  idField,
  severalOf,
  textField,
  timeField,
} from '../http/listFields.ts';
import { ONE_LINE } from '../../domain/shared/oneLine.ts';
import { defineList } from '../http/lists.ts';
import {
  Actor,
  closed,
  Id,
  Nullable,
  Position,
  Reference,
  referenceTo,
  TenantId,
  Timestamp,
  Warnings,
} from '../http/schemas.ts';
import { JobReference } from '../jobs/schemas.ts';

const AttemptError = Type.Object(
  {
    code: Type.String({ examples: ['http_status', 'timed_out', 'connect_failed'] }),
    message: Type.String(),
  },
  { title: 'DeliveryError', ...closed },
);

export const AttemptRecord = Type.Object(
  {
    number: Type.Integer({ description: 'Counts from 1.' }),
    jobId: referenceTo('jobs', Id('job')),
    job: Nullable(JobReference('The job that made it, and whether it is purged.')),
    startedAt: Timestamp,
    finishedAt: Nullable(Timestamp),
    durationMs: Nullable(Type.Integer({ description: 'Milliseconds.' })),
    httpStatus: Nullable(
      Type.Integer({ description: 'Status of the response; null without one.' }),
    ),
    error: Nullable(AttemptError),
    requestHeaders: Nullable(
      Type.Record(Type.String(), Type.String(), {
        title: 'MessageHeaders',
        description: 'Headers of the request, without the signature.',
      }),
    ),
    responseBody: Nullable(
      Type.String({
        description:
          'The first 4 KiB of the response as text, with credentials masked and control ' +
          'characters escaped; 200 characters ' +
          'in lists. The endpoint controls this text: never render it as HTML.',
      }),
    ),
    responseTruncated: Nullable(
      Type.Boolean({ description: 'True when the response was longer than shown.' }),
    ),
  },
  { title: 'DeliveryAttempt', ...closed },
);
export type AttemptRecord = Static<typeof AttemptRecord>;

export const DeliveryRecord = Type.Object(
  {
    id: Id('dlv'),
    tenantId: Reference('tenants', 'The tenant of the webhook.'),
    webhookId: referenceTo('webhooks', Id('whk')),
    eventId: Id('evt'),
    eventType: Type.String(),
    sequence: Type.Integer({ description: 'Position of the event in the log.' }),
    status: Type.Enum([...DELIVERY_STATUSES], { title: 'DeliveryStatus' }),
    reason: Nullable(Type.String({ description: 'Code: why it failed or was cancelled.' })),
    jobId: Type.Union([referenceTo('jobs', Id('job')), Type.Null()], {
      description: 'Its last job; null while it waits for a free slot of its webhook.',
    }),
    job: Nullable(JobReference('Its last job, and whether it is purged.')),
    workflowId: Nullable(
      Type.String({
        description:
          'The Temporal workflow of that job; null in its first attempt, if that was accepted, and if the job is purged.',
      }),
    ),
    attemptCount: Type.Integer({ description: 'Attempts of all jobs of the delivery.' }),
    attempts: Type.Array(AttemptRecord, {
      description: 'Oldest first; the last 20 of a single delivery, the last 5 in lists.',
    }),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { title: 'Delivery', ...closed },
);
export type DeliveryRecord = Static<typeof DeliveryRecord>;

const webhook = {
  id: Id('whk'),
  tenantId: Reference('tenants'),
  endpointUrl: Type.String({
    description: 'Credentials in the query are masked for callers other than the creator.',
  }),
  description: Type.String(),
  eventTypes: Type.Array(Type.String({ description: 'An event type, or * for all.' })),
  enabled: Type.Boolean(),
  secret: Type.String({
    description: 'Masked, except in the response that creates or rotates it.',
  }),
  retryPolicy: DeliveryRetryPolicy,
  previousSecretUntil: Nullable(
    Type.String({
      format: 'date-time',
      description: 'Until when the previous secret signs, too; null if it was never rotated.',
    }),
  ),
  failingSince: Nullable(
    Type.String({
      format: 'date-time',
      description: 'Since when every attempt has failed; null after a success.',
    }),
  ),
  disabledAt: Nullable(Timestamp),
  disabledReason: Nullable(
    Type.Enum([...DISABLED_REASONS], {
      title: 'WebhookDisabledReason',
      description:
        'request: disabled with PUT; endpoint_removed: the endpoint answered 410; failing: ' +
        'every attempt failed for five days.',
    }),
  ),
  createdBy: Actor(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  version: Type.Integer(),
};

const LastDelivery = Type.Object(
  {
    id: Id('dlv'),
    status: Type.Enum([...DELIVERY_STATUSES], { title: 'DeliveryStatus' }),
    reason: Nullable(Type.String()),
    httpStatus: Nullable(Type.Integer()),
    errorCode: Nullable(Type.String()),
    updatedAt: Timestamp,
  },
  {
    title: 'LastDelivery',
    ...closed,
    description: 'The newest delivery with its last attempt; in lists only.',
  },
);

export const WebhookRecord = Type.Object(
  { ...webhook, lastDelivery: Type.Optional(Nullable(LastDelivery)), warnings: Warnings },
  { title: 'Webhook', ...closed },
);
export type WebhookRecord = Static<typeof WebhookRecord>;

export const WebhookWithDeliveries = Type.Object(
  {
    ...webhook,
    deliveries: Type.Array(DeliveryRecord, { description: 'Newest first.' }),
    nextCursor: Type.Union([Type.String(), Type.Null()], {
      description: 'Cursor of the next page of deliveries; null on the last page.',
    }),
  },
  { title: 'WebhookWithDeliveries', ...closed },
);
export type WebhookWithDeliveries = Static<typeof WebhookWithDeliveries>;

const EndpointUrl = Type.String({
  title: 'EndpointUrl',
  pattern: '^[Hh][Tt][Tt][Pp][Ss]?://[^/?#@\\\\\\s\\ud800-\\udfff]+([/?#][^\\s\\ud800-\\udfff]*)?$',
  maxLength: 2_048,
  examples: ['https://hooks.example.net/holdfast'],
  description:
    'http or https, without credentials. The host must resolve to public addresses, or to ' +
    'addresses that HOLDFAST_OUTBOUND_ALLOW permits.',
  'x-rule': 'must be an http or https URL without credentials',
});

/** A single schema for both forms, a list of types or `*`, so that errors name one rule. */
const EventTypes = Type.Unsafe<string[] | string>({
  title: 'SubscribedEventTypes',
  type: ['array', 'string'],
  items: {
    title: 'SubscribedEventType',
    type: 'string',
    enum: [...SUPPORTED_EVENT_TYPES, '*'],
  },
  minItems: 1,
  maxItems: 500,
  pattern: '^\\*$',
  'x-rule': 'must be a list of event types, or *',
  description: 'Event types, or * for all types, including those that are added later.',
  examples: [['job.failed']],
});

const Secret = Type.String({
  title: 'WebhookSecret',
  minLength: 8,
  maxLength: 256,
  pattern: '^[^\\ud800-\\udfff]*$',
  'x-rule': 'must be text of 8 to 256 characters without unpaired surrogates',
  description:
    'The key of whsec_ and base64 is what the base64 encodes; the key of any other text is its ' +
    'UTF-8 bytes. Responses show the key as whsec_ and base64. 24 bytes or more are recommended. ' +
    'Default: 32 random bytes.',
  examples: ['whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8='],
});
const webhookFields = {
  endpointUrl: EndpointUrl,
  eventTypes: EventTypes,
  enabled: Type.Optional(Type.Boolean({ default: true })),
  secret: Type.Optional(Secret),
  description: Type.Optional(Type.String({ maxLength: 255, ...ONE_LINE })),
  retryPolicy: Type.Optional(
    Type.Partial(DeliveryRetryPolicy, {
      title: 'PartialDeliveryRetryPolicy',
      ...closed,
      description:
        'Shortens the retry plan: immediately, then after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, ' +
        '14 h, 20 h and 24 h.',
    }),
  ),
};

export const WebhookRequest = Type.Object(webhookFields, { title: 'WebhookRequest', ...closed });

export const WebhookChange = Type.Object(
  {
    endpointUrl: Type.Optional(EndpointUrl),
    eventTypes: Type.Optional(EventTypes),
    enabled: Type.Optional(Type.Boolean()),
    secret: Type.Optional(
      Type.String({
        ...Secret,
        description:
          'Rotates the secret: for a day, messages carry signatures of both. ******** leaves it ' +
          'unchanged.',
      }),
    ),
    description: webhookFields.description,
    retryPolicy: webhookFields.retryPolicy,
  },
  { title: 'WebhookChange', ...closed },
);

export const WEBHOOKS = defineList({
  name: 'webhooks',
  id: 'whk',
  item: WebhookRecord,
  title: 'WebhookList',
  fields: {
    id: idField(Id('whk'), { facet: false }),
    enabled: flagField({ description: 'Only enabled or only disabled webhooks.' }),
    failingSince: timeField({ nullable: true }),
    disabledReason: choiceField(DISABLED_REASONS, {
      title: 'WebhookDisabledReason',
      nullable: true,
    }),
    tenantId: idField(TenantId()),
    createdBy: textField({ facet: true }),
    createdAt: timeField(),
    updatedAt: timeField({ sort: true }),
  },
  own: {
    eventType: severalOf(
      Type.Enum([...SUPPORTED_EVENT_TYPES], { title: 'EventType' }),
      'Webhooks that subscribe to one of these types.',
    ),
  },
  more: {
    supportedEventTypes: Type.Array(Type.String(), {
      description: 'All types that a webhook can subscribe to.',
    }),
  },
});

export const DELIVERIES = defineList({
  name: 'deliveries',
  id: 'dlv',
  item: DeliveryRecord,
  title: 'DeliveryList',
  fields: {
    webhookId: idField(Id('whk')),
    status: choiceField(DELIVERY_STATUSES, { title: 'DeliveryStatus' }),
    eventId: idField(Id('evt'), { facet: false }),
    tenantId: idField(TenantId()),
    createdAt: timeField(),
  },
});

/** The deliveries in a webhook: their first pages, which the list of them continues. */
export const EmbeddedQuery = Type.Pick(DELIVERIES.query, ['status', 'limit', 'cursor'], closed);

export const RotateRequest = Type.Object(
  { secret: Type.Optional(Secret) },
  { title: 'RotateSecretRequest', ...closed },
);

export const ReplayRequest = Type.Object(
  {
    afterSequence: Type.Optional(
      Position('Replays the events after this sequence. Not together with `since`.'),
    ),
    since: Type.Optional(
      Type.String({
        ...Timestamp,
        description: 'Replays the events created then or later. Not together with `afterSequence`.',
      }),
    ),
  },
  { title: 'ReplayRequest', ...closed },
);
export type ReplayRequest = Static<typeof ReplayRequest>;

export const TestReport = Type.Object(
  {
    ok: Type.Boolean({ description: 'True when the endpoint answered 2xx.' }),
    ...Type.Pick(AttemptRecord, [
      'durationMs',
      'httpStatus',
      'error',
      'requestHeaders',
      'responseBody',
      'responseTruncated',
    ]).properties,
    retryAfterMs: Nullable(
      Type.Number({ description: 'Retry-After of the response, in milliseconds.' }),
    ),
  },
  { title: 'WebhookTestReport', ...closed },
);
export type TestReport = Static<typeof TestReport>;
