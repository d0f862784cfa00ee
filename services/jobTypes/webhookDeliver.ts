import { Type, type Static } from 'typebox';
import type { Note } from '../../db/commit.ts';
import {
  beginAttempt,
  deliveryEnded,
  endAttempt,
  type BegunAttempt,
} from '../../db/webhooks/deliveryAttempts.ts';
import { JobFailure, jobType, type JobTools, type JobType } from '../../domain/jobType.ts';
import {
  DEFAULT_DELIVERY_RETRY,
  DELIVER,
  EXCHANGE_MS,
  GONE,
  retryPolicyOf,
} from '../../domain/webhooks/webhooks.ts';
import { jobWorkflowId } from '../../temporal/contracts.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import type { Metrics } from '../../platform/metrics.ts';
import { persistently } from '../persistently.ts';
import type { JobEnding } from '../jobEnds.ts';
import { failsForLong, type WebhookDisable } from '../webhookDisable.ts';
import { unanswered, type Exchange, type WebhookSend } from '../webhooks/sender.ts';
import type { WebhookSecrets } from '../webhookSecrets.ts';

const Payload = Type.Object({ deliveryId: Type.String() }, { additionalProperties: false });
type Payload = Static<typeof Payload>;

export type DeliverDeps = {
  note: Note;
  clock: Clock;
  log: Log;
  metrics: Metrics;
  secrets: WebhookSecrets;
  send: WebhookSend;
  disable: WebhookDisable;
};

/** Beyond the exchange there is time to read what to send and to write what came of it. */
const MARGIN_MS = 60_000;

/** Until the cancellation of a disabled webhook's deliveries reaches this one. */
const CANCELLATION_MS = 60_000;

/** Sends one event to one webhook. Every attempt is a row, and the same message with the same `webhook-id`. */
export function webhookDeliver({
  note,
  clock,
  log,
  metrics,
  secrets,
  send,
  disable,
}: DeliverDeps): JobType<Payload> {
  /** Sends, and tells what came of it; `blameless` where the endpoint has no part in a failure. */
  async function exchange(
    begun: BegunAttempt,
    signal: AbortSignal,
  ): Promise<{ outcome: Exchange; blameless: boolean }> {
    const {
      webhookId,
      endpointUrl,
      eventId,
      eventType,
      eventCreatedAt,
      sequence,
      eventTenantId,
      data,
    } = begun;
    let keys: string[];
    try {
      keys = secrets.signing(webhookId, begun, clock.now());
    } catch (error) {
      log.error({ err: error, webhookId }, 'a delivery cannot be signed');
      return {
        outcome: unanswered({
          code: 'secret_unreadable',
          message: 'The secret of the webhook cannot be opened',
        }),
        blameless: true,
      };
    }
    try {
      const message = {
        id: eventId,
        type: eventType,
        timestamp: eventCreatedAt,
        sequence,
        tenantId: eventTenantId,
        data,
      };
      return { outcome: await send(endpointUrl, keys, message, signal), blameless: false };
    } catch (error) {
      if (!signal.aborted) throw error;
      return {
        outcome: unanswered({ code: 'interrupted', message: 'The attempt was cut off' }),
        blameless: true,
      };
    }
  }

  async function throwIfFailed(
    { webhookId, tenantId, failingSince }: BegunAttempt,
    { httpStatus, error, retryAfterMs }: Exchange,
    jobId: string,
  ) {
    if (!error) return;
    const webhook = { id: webhookId, tenantId };
    if (httpStatus === GONE) {
      await disable(webhook, 'gone', jobWorkflowId(jobId));
      throw new JobFailure('gone', 'The endpoint is gone (410)', { retryable: false });
    }
    if (failsForLong(failingSince, clock.now()))
      await disable(webhook, 'failing', jobWorkflowId(jobId));
    throw new JobFailure(error.code, error.message, {
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    });
  }

  async function deliver(
    { deliveryId }: Payload,
    { jobId, signal, log: tell }: JobTools,
  ): Promise<object> {
    const begun = await note((db, now) => beginAttempt(db, { deliveryId, jobId, now }));
    if (!begun) {
      tell('info', 'The delivery has another job by now; nothing is sent');
      return { superseded: true };
    }
    const { number, webhookId, enabled } = begun;
    if (!enabled)
      throw new JobFailure('webhook_disabled', 'The webhook is disabled', {
        retryAfterMs: CANCELLATION_MS,
      });
    if (number === null) {
      tell('info', 'An attempt that was cut off had succeeded; nothing is sent again');
      return { delivered: true };
    }
    const { outcome, blameless } = await exchange(begun, signal);
    const { httpStatus, durationMs, error } = outcome;
    metrics.deliveryAttempts.inc({ outcome: error ? 'failed' : 'succeeded' });
    // Sent is sent: a database that is away for a moment must not make it be sent again.
    await persistently(
      () =>
        note((db, now) =>
          endAttempt(db, { deliveryId, number, webhookId, outcome, blameless, now }),
        ),
      'delivery',
    );
    if (error) signal.throwIfAborted();
    if (httpStatus !== null) tell('info', `The endpoint answered ${httpStatus}`, { durationMs });
    await throwIfFailed(begun, outcome, jobId);
    return { delivered: true, httpStatus, durationMs };
  }

  return jobType<Payload>({
    name: DELIVER,
    summary: 'Sends an event to a webhook',
    payload: Payload,
    lane: 'delivery',
    timeoutMs: EXCHANGE_MS + MARGIN_MS,
    retry: retryPolicyOf(DEFAULT_DELIVERY_RETRY),
    onlyThrough: 'webhooks, and POST /api/deliveries/{id}/redeliver',
    quiet: true,
    run: deliver,
  });
}

/** A delivery ends with its job. */
export const deliveryEnding: JobEnding = (work, { id, status, error }) =>
  work.change(
    deliveryEnded(
      id,
      status,
      error?.code ?? (status === 'cancelled' ? 'cancelled' : null),
      work.now,
    ),
  );
