import { Type, type Static } from 'typebox';
import type { Work, WriteUnaudited } from '../../../db/core/commit.ts';
import {
  startDeliveryAttempt,
  finishDelivery,
  finishDeliveryAttempt,
  lastAttemptStart,
  type StartedDeliveryAttempt,
} from '../../../db/webhooks/deliveryAttempts.ts';
import {
  JobFailure,
  defineJobType,
  type JobTools,
  type JobType,
} from '../../../domain/jobs/jobType.ts';
import {
  DEFAULT_DELIVERY_RETRY,
  DELIVER_JOB_TYPE,
  EXCHANGE_TIMEOUT_MS,
  ENDPOINT_REMOVED,
  isUsableAnswer,
  jobRetryPolicy,
} from '../../../domain/webhooks/webhooks.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import type { Log } from '../../../platform/log.ts';
import type { Metrics } from '../../../platform/metrics.ts';
import { retryWrite } from '../../jobs/retryWrite.ts';
import type { CompletionHook } from '../../jobs/completion.ts';
import { disableIn, type AutoDisable } from '../../webhooks/autoDisable.ts';
import type { HealthRecorder } from '../../webhooks/health.ts';
import { measureAttempt } from '../../webhooks/measureAttempt.ts';
import { failureOf, type SendEvent } from '../../webhooks/sendEvent.ts';
import type { SendResult } from '../../webhooks/sender.ts';

const Payload = Type.Object({ deliveryId: Type.String() }, { additionalProperties: false });
type Payload = Static<typeof Payload>;

export type DeliverDeps = {
  writeUnaudited: WriteUnaudited;
  log: Log;
  metrics: Metrics;
  sendEvent: SendEvent;
  disable: AutoDisable;
  health: HealthRecorder;
};

/** Time beyond the request itself, to read the message and to record the outcome. */
const OVERHEAD_MS = 60_000;

/** How long the job of a disabled webhook waits; the relay cancels it before that. */
const CANCELLATION_WAIT_MS = 60_000;

/**
 * The job type that sends one event to one webhook. Every attempt has a row, and sends the same
 * message with the same `webhook-id`.
 */
export function createDeliverJobType({
  writeUnaudited,
  log,
  metrics,
  sendEvent,
  disable,
  health,
}: DeliverDeps): JobType<Payload> {
  /** Disables a webhook that has failed for too long. Error: `JobFailure` unless it succeeded. */
  async function throwIfFailed(
    attempt: StartedDeliveryAttempt,
    outcome: SendResult,
    jobId: string,
  ) {
    const failure = failureOf(outcome);
    if (!failure) return;
    if (failure.code === ENDPOINT_REMOVED)
      log.warn(
        { webhookId: attempt.webhookId, jobId },
        'an endpoint was removed; its webhook will be disabled unless it was changed',
      );
    else await disable(attempt, jobId);
    throw failure;
  }

  async function deliver(
    { deliveryId }: Payload,
    { jobId, signal, log: jobLog }: JobTools,
  ): Promise<object> {
    const attempt = await writeUnaudited((db, now) =>
      startDeliveryAttempt(db, { deliveryId, jobId, now }),
    );
    if (!attempt) {
      jobLog('info', 'Another job sends this delivery now; nothing is sent');
      return { superseded: true };
    }
    const { number, webhookId, endpointUrl, enabled } = attempt;
    if (!enabled)
      throw new JobFailure('webhook_disabled', 'The webhook is disabled', {
        retryAfterMs: CANCELLATION_WAIT_MS,
      });
    if (number === null) {
      jobLog('info', 'An interrupted attempt had succeeded; nothing is sent');
      return { delivered: true };
    }
    const { outcome, notEndpointFault } = await sendEvent(attempt, signal);
    const { httpStatus, durationMs, error } = outcome;
    measureAttempt(metrics, attempt, outcome, new Date());
    // The message was sent. A short outage of the database must not cause another attempt.
    await retryWrite(
      () =>
        writeUnaudited((db, now) =>
          finishDeliveryAttempt(db, { deliveryId, number, outcome, now }),
        ),
      'delivery',
    );
    if (!notEndpointFault)
      health.note({
        webhookId,
        endpointUrl,
        hasFailed: error !== null,
        hasAnswered: isUsableAnswer(httpStatus),
        at: new Date(),
      });
    if (error) signal.throwIfAborted();
    if (httpStatus !== null) jobLog('info', `The endpoint answered ${httpStatus}`, { durationMs });
    await throwIfFailed(attempt, outcome, jobId);
    return { delivered: true, httpStatus, durationMs };
  }

  return defineJobType<Payload>({
    name: DELIVER_JOB_TYPE,
    summary: 'Sends an event to a webhook',
    payload: Payload,
    lane: 'delivery',
    timeoutMs: EXCHANGE_TIMEOUT_MS + OVERHEAD_MS,
    retry: jobRetryPolicy(DEFAULT_DELIVERY_RETRY),
    createdOnlyBy: 'webhooks, and POST /api/deliveries/{id}/redeliver',
    emitsEvents: false,
    run: deliver,
  });
}

/** Disables the webhook of a job whose last attempt says that the endpoint was removed. */
async function disableRemoved(work: Work, jobId: string, webhookId: string): Promise<void> {
  const startedAt = await lastAttemptStart(await work.trx(), jobId);
  // A delivery that has another job is sent again: that attempt decides.
  if (startedAt) await disableIn(work, webhookId, { reason: ENDPOINT_REMOVED, startedAt });
}

/**
 * Ends a delivery in the commit that ends its job. An endpoint that was removed disables its webhook
 * in the same commit, so that the cancellation of the other deliveries cannot overtake the failure.
 */
export const deliveryCompletionHook: CompletionHook = {
  jobType: DELIVER_JOB_TYPE,
  async onFinished(work, { id, status, error, sourceId }) {
    if (error?.code === ENDPOINT_REMOVED)
      await disableRemoved(work, id, assertDefined(sourceId, 'job.sourceId'));
    work.change(
      finishDelivery(
        id,
        status,
        error?.code ?? (status === 'cancelled' ? 'cancelled' : null),
        work.now,
      ),
    );
  },
};
