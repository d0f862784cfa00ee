import type { DeliveryEndpoint, DeliveryMessage } from '../../db/webhooks/deliveryAttempts.ts';
import { JobFailure } from '../../domain/jobs/jobType.ts';
import type { RetryPolicy } from '../../domain/jobs/retry.ts';
import { ENDPOINT_REMOVED, ENDPOINT_REMOVED_STATUS } from '../../domain/webhooks/webhooks.ts';
import type { Log } from '../../platform/log.ts';
import type { WebhookSecrets } from './secrets.ts';
import { cannotSign, noResponse, type SendResult, type WebhookSender } from './sender.ts';

export type SendEvent = ReturnType<typeof createSendEvent>;

/** A first attempt that this process makes, with the endpoint and the policy of its webhook. */
export type FirstAttempt = DeliveryMessage &
  DeliveryEndpoint & {
    deliveryId: string;
    jobId: string;
    number: number;
    retryPolicy: RetryPolicy;
  };

type Deps = { secrets: WebhookSecrets; sendWebhook: WebhookSender; log: Log };

/** The outcome of an attempt. `notEndpointFault` is true when a failure is not the endpoint's. */
export type EventOutcome = { outcome: SendResult; notEndpointFault: boolean };

/** Sends events to webhooks. */
export const createSendEvent =
  ({ secrets, sendWebhook, log }: Deps) =>
  /** Sends one event to its endpoint. Every failure is an outcome, also that `signal` was aborted. */
  async (
    attempt: DeliveryEndpoint & DeliveryMessage,
    signal: AbortSignal,
  ): Promise<EventOutcome> => {
    const { webhookId, endpointUrl } = attempt;
    let signingSecrets: string[];
    try {
      signingSecrets = secrets.signingSecrets(webhookId, attempt, new Date());
    } catch (error) {
      log.error({ err: error, webhookId }, 'a delivery cannot be signed');
      return { outcome: cannotSign(), notEndpointFault: true };
    }
    try {
      const message = {
        id: attempt.eventId,
        type: attempt.eventType,
        timestamp: attempt.eventCreatedAt,
        sequence: attempt.sequence,
        tenantId: attempt.eventTenantId,
        subject: { type: attempt.subjectType, id: attempt.subjectId },
        actorId: attempt.eventActorId,
        data: attempt.data,
      };
      return {
        outcome: await sendWebhook(endpointUrl, signingSecrets, message, signal),
        notEndpointFault: false,
      };
    } catch (error) {
      if (!signal.aborted) throw error;
      return {
        outcome: noResponse({ code: 'interrupted', message: 'The attempt was interrupted' }),
        notEndpointFault: true,
      };
    }
  };

/** The failure of an attempt; undefined when the endpoint has accepted the delivery. */
export function failureOf({ httpStatus, error, retryAfterMs }: SendResult): JobFailure | undefined {
  if (!error) return undefined;
  if (httpStatus === ENDPOINT_REMOVED_STATUS)
    return new JobFailure(ENDPOINT_REMOVED, 'The endpoint answered 410: it was removed', {
      retryable: false,
    });
  return new JobFailure(error.code, error.message, {
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  });
}
