import { Type, type Static } from 'typebox';
import type { Note } from '../../db/commit.ts';
import { beginAttempt, endAttempt, type BegunAttempt } from '../../db/deliveries.ts';
import { AppError } from '../../domain/errors.ts';
import { JobFailure, jobType, type JobTools, type JobType } from '../../domain/jobType.ts';
import { DELIVER, GONE, EXCHANGE_MS } from '../../domain/webhooks.ts';
import { jobWorkflowId } from '../../temporal/contracts.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Metrics } from '../../platform/metrics.ts';
import { persistently } from '../persistently.ts';
import { failsForLong, type WebhookDisable } from '../webhookDisable.ts';
import type { Exchange, WebhookSend } from '../webhookSend.ts';
import type { WebhookSecrets } from '../webhookSecrets.ts';

const Payload = Type.Object({ deliveryId: Type.String() }, { additionalProperties: false });
type Payload = Static<typeof Payload>;

export type DeliverDeps = { note: Note; clock: Clock; metrics: Metrics; secrets: WebhookSecrets; send: WebhookSend; disable: WebhookDisable };

/** Beyond the exchange there is time to read what to send and to write what came of it. */
const MARGIN_MS = 60_000;

/** Until the cancellation of a disabled webhook's deliveries reaches this one. */
const CANCELLATION_MS = 60_000;

/** Sends one event to one webhook. Every attempt is a row, and the same message with the same `webhook-id`. */
export function webhookDeliver({ note, clock, metrics, secrets, send, disable }: DeliverDeps): JobType<Payload> {
  /** What cannot be signed is an attempt that failed, like one that cannot be sent. */
  function signing(begun: BegunAttempt): string[] | Exchange {
    try {
      return secrets.signing(begun.webhookId, begun, clock.now());
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return { durationMs: 0, httpStatus: null, requestHeaders: {}, answer: null, answerTruncated: false, error: { code: error.code, message: error.message } };
    }
  }

  async function exchange(begun: BegunAttempt, signal: AbortSignal): Promise<Exchange> {
    const { endpointUrl, eventId, eventType, eventCreatedAt, sequence, eventTenantId, data } = begun;
    const keys = signing(begun);
    if (!Array.isArray(keys)) return keys;
    return send(endpointUrl, keys, { id: eventId, type: eventType, timestamp: eventCreatedAt, sequence, tenantId: eventTenantId, data }, signal);
  }

  async function judge({ webhookId, tenantId, failingSince }: BegunAttempt, { httpStatus, error, retryAfterMs }: Exchange, jobId: string) {
    if (!error) return;
    const webhook = { id: webhookId, tenantId };
    if (httpStatus === GONE) {
      await disable(webhook, 'gone', jobWorkflowId(jobId));
      throw new JobFailure('gone', 'The endpoint is gone (410)', { retryable: false });
    }
    if (failsForLong(failingSince, clock.now())) await disable(webhook, 'failing', jobWorkflowId(jobId));
    throw new JobFailure(error.code, error.message, { ...(retryAfterMs !== undefined && { retryAfterMs }) });
  }

  async function deliver({ deliveryId }: Payload, { jobId, signal, log }: JobTools): Promise<object> {
    const begun = await note((db, now) => beginAttempt(db, { deliveryId, jobId, now }));
    if (!begun) throw new JobFailure('delivery_lost', 'The delivery is not there, or has another job', { retryable: false });
    const { number, webhookId, enabled } = begun;
    if (!enabled) throw new JobFailure('webhook_disabled', 'The webhook is disabled', { retryAfterMs: CANCELLATION_MS });
    if (number === null) {
      log('info', 'An attempt that was cut off had succeeded; nothing is sent again');
      return { delivered: true };
    }
    const outcome = await exchange(begun, signal);
    const { httpStatus, durationMs, error } = outcome;
    metrics.deliveryAttempts.inc({ outcome: error ? 'failed' : 'succeeded' });
    // Sent is sent: a database that is away for a moment must not make it be sent again.
    await persistently(() => note((db, now) => endAttempt(db, { deliveryId, number, webhookId, outcome, now })), 'delivery');
    if (httpStatus !== null) log('info', `The endpoint answered ${httpStatus}`, { durationMs });
    await judge(begun, outcome, jobId);
    return { delivered: true, httpStatus, durationMs };
  }

  return jobType<Payload>({
    name: DELIVER,
    summary: 'Sends an event to a webhook',
    payload: Payload,
    lane: 'delivery',
    timeoutMs: EXCHANGE_MS + MARGIN_MS,
    onlyThrough: 'POST /api/deliveries/{id}/redeliver',
    quiet: true,
    run: deliver,
  });
}
