import type { Knex } from '../core/knex.ts';
import type { Change } from '../core/unitOfWork.ts';
import { prepared } from '../core/prepared.ts';
import type { FinalDeliveryStatus } from '../../domain/webhooks/webhooks.ts';

/** An attempt that got through. */
const SUCCEEDED = 'a.http_status BETWEEN 200 AND 299 AND a.error IS NULL';

/**
 * A delivery ends with its job, in the same statement. What was sent was sent, whatever became of the job afterwards; one
 * that has another job by now is left alone.
 */
export const deliveryEnded = (
  jobId: string,
  status: FinalDeliveryStatus,
  reason: string | null,
  now: Date,
): Change => ({
  topics: [],
  optional: true,
  sql: (name) => `${name}_sent AS (
    SELECT FROM delivery_attempts AS a JOIN deliveries AS d ON d.id = a.delivery_id WHERE d.job_id = ? AND a.job_id = d.job_id AND ${SUCCEEDED}
  ), ${name} AS (
    UPDATE deliveries SET updated_at = ?, status = CASE WHEN EXISTS (SELECT FROM ${name}_sent) THEN 'succeeded' ELSE ? END,
      reason = CASE WHEN EXISTS (SELECT FROM ${name}_sent) THEN NULL WHEN ? = 'cancelled' THEN COALESCE(reason, ?) ELSE ? END
    WHERE job_id = ? AND status = 'pending')`,
  bindings: [jobId, now, status, status, reason, reason, jobId],
});

/** Everything that an attempt needs, as it is when the attempt begins. */
export type BegunAttempt = {
  number: number | null;
  webhookId: string;
  tenantId: string;
  enabled: boolean;
  endpointUrl: string;
  failingSince: Date | null;
  secret: string;
  previousSecret: string | null;
  previousSecretUntil: Date | null;
  eventId: string;
  eventType: string;
  sequence: number;
  eventTenantId: string;
  data: object;
  eventCreatedAt: Date;
};

/**
 * Opens the next attempt of a delivery, and closes one that was cut off. There is no number when nothing is to be
 * sent: the webhook is disabled, or an attempt of this job has succeeded and its worker died before it could say so.
 */
export async function beginAttempt(
  db: Knex,
  { deliveryId, jobId, now }: { deliveryId: string; jobId: string; now: Date },
): Promise<BegunAttempt | undefined> {
  const { rows }: { rows: BegunAttempt[] } = await prepared(
    db,
    `WITH d AS (
       SELECT d.id, w.id AS "webhookId", w.tenant_id AS "tenantId", w.enabled, w.endpoint_url AS "endpointUrl", w.failing_since AS "failingSince",
              w.secret, w.previous_secret AS "previousSecret", w.previous_secret_until AS "previousSecretUntil",
              e.id AS "eventId", e.type AS "eventType", e.sequence, e.tenant_id AS "eventTenantId", e.data, e.created_at AS "eventCreatedAt"
       FROM deliveries AS d JOIN webhooks AS w ON w.id = d.webhook_id JOIN events AS e ON e.id = d.event_id
       WHERE d.id = ? AND d.job_id = ? AND d.status = 'pending'
     ), cut AS (
       UPDATE delivery_attempts SET finished_at = ?, error = '{"code":"interrupted","message":"The attempt was cut off"}'
       WHERE delivery_id = ? AND finished_at IS NULL
     ), opened AS (
       INSERT INTO delivery_attempts (delivery_id, number, job_id, started_at)
       SELECT d.id, COALESCE((SELECT max(number) FROM delivery_attempts WHERE delivery_id = d.id), 0) + 1, ?, ?
       FROM d WHERE d.enabled AND NOT EXISTS (
         SELECT FROM delivery_attempts AS a WHERE a.delivery_id = d.id AND a.job_id = ? AND ${SUCCEEDED})
       RETURNING number
     )
     SELECT d.*, (SELECT number FROM opened) AS number FROM d`,
    [deliveryId, jobId, now, deliveryId, jobId, now, jobId],
  );
  return rows[0];
}

export type AttemptOutcome = {
  durationMs: number;
  httpStatus: number | null;
  error: { code: string; message: string } | null;
  requestHeaders: Record<string, string>;
  answer: string | null;
  answerTruncated: boolean;
};

/**
 * Records what came of an attempt. One that failed makes room for another delivery. Since when a webhook only fails is kept
 * with it: failures that are not the endpoint's (`blameless`) do not count.
 */
export async function endAttempt(
  db: Knex,
  {
    deliveryId,
    number,
    webhookId,
    outcome,
    blameless,
    now,
  }: {
    deliveryId: string;
    number: number;
    webhookId: string;
    outcome: AttemptOutcome;
    blameless: boolean;
    now: Date;
  },
): Promise<void> {
  const { durationMs, httpStatus, error, requestHeaders, answer, answerTruncated } = outcome;
  await prepared(
    db,
    `WITH ended AS (
       UPDATE delivery_attempts SET finished_at = ?, duration_ms = ?, http_status = ?, error = ?, request_headers = ?, answer = ?, answer_truncated = ?
       WHERE delivery_id = ? AND number = ?
     ), resting AS (
       UPDATE deliveries SET under_way = false WHERE id = ? AND ?::boolean
     )
     UPDATE webhooks SET failing_since = ? WHERE id = ? AND (failing_since IS NULL) = ?::boolean AND NOT ?::boolean`,
    [
      now,
      durationMs,
      httpStatus,
      error && JSON.stringify(error),
      JSON.stringify(requestHeaders),
      answer,
      answerTruncated,
      deliveryId,
      number,
      deliveryId,
      error !== null,
      error ? now : null,
      webhookId,
      error !== null,
      blameless,
    ],
  );
}
