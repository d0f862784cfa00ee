import { Type, type Static, type TSchema } from 'typebox';
import type { RetryPolicy } from '../jobs/retry.ts';
import { DAY_MS } from '../shared/durations.ts';

/**
 * Why a webhook is disabled: by request, because its endpoint answered 410, or because every
 * attempt failed for `FAILING_LIMIT_MS`.
 */
export const DISABLED_REASONS = ['request', 'endpoint_removed', 'failing'] as const;
export type DisabledReason = (typeof DISABLED_REASONS)[number];

/** A delivery is `pending` until its job has finished. */
export const DELIVERY_STATUSES = ['pending', 'succeeded', 'failed', 'cancelled'] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];
export type FinalDeliveryStatus = Exclude<DeliveryStatus, 'pending'>;

/** The job type that sends one delivery, and the one that replays events to a webhook. */
export const DELIVER_JOB_TYPE = 'webhook.deliver';
export const REPLAY_JOB_TYPE = 'webhook.replay';

/** The most events that one replay covers. */
export const MAX_REPLAY_EVENTS = 10_000;

/** A webhook is disabled after every attempt has failed for this long: five days. */
export const FAILING_LIMIT_MS = 5 * DAY_MS;

/** How long the previous secret still signs after a rotation: one day. */
export const ROTATION_OVERLAP_MS = DAY_MS;

/** Limit of one request, from name resolution to the last byte of the response that is read. */
export const EXCHANGE_TIMEOUT_MS = 15_000;

/** How many bytes of a response are read: more than its excerpt has, to find credentials at the end of that. */
export const MAX_RESPONSE_BYTES = 16_384;

/**
 * True for a status that says that an endpoint receives events, whether it accepts them or not. An endpoint that is
 * down, overloaded or behind a proxy that does not reach it answers with the others.
 */
export const isUsableAnswer = (status: number | null): boolean =>
  status !== null && status < 500 && status !== 408 && status !== 429;

/** The retry plan: seconds before the second and each later attempt. A webhook may shorten it. */
const RETRY_DELAYS_SECONDS = [
  5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400,
] as const;

/**
 * Schema of the request body that a webhook receives (Standard Webhooks, "Payload structure"). The
 * sequence is null for a test message, which is not an event of the log.
 */
export const messageSchema = <T extends TSchema, D extends TSchema>(type: T, data: D) =>
  Type.Object({
    type,
    timestamp: Type.String({ format: 'date-time' }),
    sequence: Type.Union([Type.Integer(), Type.Null()]),
    tenantId: Type.String(),
    subject: Type.Object(
      { type: Type.String(), id: Type.String() },
      { title: 'MessageSubject', description: 'The record that the event is about.' },
    ),
    actorId: Type.String({
      description: 'The user or system component that caused the event.',
    }),
    data,
  });

/** How a webhook shortens the retry plan. */
export const DeliveryRetryPolicy = Type.Object(
  {
    maxAttempts: Type.Integer({
      minimum: 1,
      maximum: RETRY_DELAYS_SECONDS.length + 1,
      description: 'Maximum number of attempts, including the first. Default: 10.',
    }),
    maxIntervalSeconds: Type.Number({
      minimum: 0.05,
      maximum: 86_400,
      description:
        'Upper limit of each planned wait. Up to 10 % is added at random. Default: 86400.',
    }),
  },
  { additionalProperties: false, title: 'DeliveryRetryPolicy' },
);
export type DeliveryRetryPolicy = Static<typeof DeliveryRetryPolicy>;

export const DEFAULT_DELIVERY_RETRY: DeliveryRetryPolicy = {
  maxAttempts: RETRY_DELAYS_SECONDS.length + 1,
  maxIntervalSeconds: 86_400,
};

/** The retry policy of the job that sends a delivery. */
export const jobRetryPolicy = (policy: DeliveryRetryPolicy): Partial<RetryPolicy> => ({
  ...policy,
  intervalsSeconds: [...RETRY_DELAYS_SECONDS],
  jitter: 0.1,
});

/** Statuses whose header `Retry-After` is honoured. */
export const RETRY_AFTER_STATUSES = new Set([429, 502, 503, 504]);

/** RFC 9110: the endpoint was removed permanently. It disables the webhook. */
export const ENDPOINT_REMOVED_STATUS = 410;

/** Error of a delivery whose endpoint answered so. The commit that ends it disables the webhook. */
export const ENDPOINT_REMOVED = 'endpoint_removed';

export const isSuccess = (status: number): boolean => status >= 200 && status < 300;

/** The part of an endpoint's URL that may be shown: path and query may contain secrets. */
export const originOf = (endpointUrl: string): string => new URL(endpointUrl).origin;
