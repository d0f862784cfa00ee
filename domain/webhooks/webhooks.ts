import { Type, type Static, type TSchema } from 'typebox';
import type { RetryPolicy } from '../jobs/retry.ts';

/** Why a webhook gets no deliveries: somebody asked for it, its endpoint answered 410, or it only failed for days. */
export const DISABLED_REASONS = ['request', 'gone', 'failing'] as const;
export type DisabledReason = (typeof DISABLED_REASONS)[number];

/** A delivery is `pending` until its job has ended. */
export const DELIVERY_STATUSES = ['pending', 'succeeded', 'failed', 'cancelled'] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];
export type FinalDeliveryStatus = Exclude<DeliveryStatus, 'pending'>;

/** The job types that make deliveries, and that send events again. */
export const DELIVER = 'webhook.deliver';
export const REPLAY = 'webhook.replay';

/** Events that one replay looks at. */
export const MAX_REPLAY = 10_000;

/** A webhook whose every attempt failed for this long is disabled. */
export const FAILING_LIMIT_MS = 5 * 86_400_000;

/** How long the previous secret still signs. */
export const ROTATION_MS = 86_400_000;

/** Limit of one exchange, from the name's look-up to the last byte that is read. */
export const EXCHANGE_MS = 15_000;

/** Bytes of an answer that are kept. */
export const MAX_ANSWER_BYTES = 4_096;

/** Webhooks that a tenant may have. */
export const MAX_WEBHOOKS = 100;

/** Seconds before the second and each later attempt; what the webhook's own policy shortens. */
const RETRY_DELAYS_SECONDS = [
  5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400,
] as const;

/** What is sent to a webhook (Standard Webhooks): an event of the log, or a test, which has no sequence. */
export const messageOf = <T extends TSchema, D extends TSchema>(type: T, data: D) =>
  Type.Object({
    type,
    timestamp: Type.String({ format: 'date-time' }),
    sequence: Type.Union([Type.Integer(), Type.Null()]),
    tenantId: Type.String(),
    data,
  });

/** How a webhook shortens the plan. */
export const DeliveryRetryPolicy = Type.Object(
  {
    maxAttempts: Type.Integer({
      minimum: 1,
      maximum: RETRY_DELAYS_SECONDS.length + 1,
      description: 'All attempts, the first included; 10 unless given.',
    }),
    maxIntervalSeconds: Type.Number({
      minimum: 0.05,
      maximum: 86_400,
      description: 'No planned wait is longer; up to a tenth is added to each at random.',
    }),
  },
  { additionalProperties: false, title: 'DeliveryRetryPolicy' },
);
export type DeliveryRetryPolicy = Static<typeof DeliveryRetryPolicy>;

export const DEFAULT_DELIVERY_RETRY: DeliveryRetryPolicy = {
  maxAttempts: RETRY_DELAYS_SECONDS.length + 1,
  maxIntervalSeconds: 86_400,
};

/** The retry policy of a delivery's job. */
export const retryPolicyOf = (policy: DeliveryRetryPolicy): Partial<RetryPolicy> => ({
  ...policy,
  intervalsSeconds: [...RETRY_DELAYS_SECONDS],
  jitter: 0.1,
});

/** Statuses whose `Retry-After` is obeyed. */
export const RETRY_AFTER_STATUSES = new Set([429, 502, 503, 504]);

/** Answered by an endpoint that is not there any more. */
export const GONE = 410;

export const isSuccess = (status: number): boolean => status >= 200 && status < 300;

/** What of an endpoint's URL may be told: path and query may hold secrets. */
export const originOf = (endpointUrl: string): string => new URL(endpointUrl).origin;
