import type { Knex } from '../core/knex.ts';
import type { RecordChange } from '../core/unitOfWork.ts';
import { prepared } from '../core/prepared.ts';
import type { FinalDeliveryStatus } from '../../domain/webhooks/webhooks.ts';

/**
 * SQL: ends the attempts without an outcome of some deliveries, at a time: an expression or a binding.
 * `deliveries` is a condition of `delivery_id`, such as `= ?`.
 */
export const interruptAttempts = (at: string, deliveries: string): string =>
  `UPDATE delivery_attempts SET finished_at = ${at},
     error = '{"code":"interrupted","message":"The attempt was interrupted"}'
   WHERE delivery_id ${deliveries} AND finished_at IS NULL`;

/** SQL: the attempt `a` reached the endpoint and was accepted. */
const ATTEMPT_SUCCEEDED = 'a.http_status BETWEEN 200 AND 299 AND a.error IS NULL';

/**
 * Ends a delivery in the statement that ends its job. A delivery with a successful attempt has
 * succeeded, whatever happened to the job afterwards. A delivery that has another job by now does
 * not change.
 */
export const finishDelivery = (
  jobId: string,
  status: FinalDeliveryStatus,
  reason: string | null,
  now: Date,
): RecordChange => ({
  topics: [],
  optional: true,
  sql: (name) => `${name}_sent AS (
    SELECT FROM delivery_attempts AS a JOIN deliveries AS d ON d.id = a.delivery_id
    WHERE d.job_id = ? AND a.job_id = d.job_id AND ${ATTEMPT_SUCCEEDED}
  ), ${name} AS (
    UPDATE deliveries SET updated_at = ?,
      status = CASE WHEN EXISTS (SELECT FROM ${name}_sent) THEN 'succeeded' ELSE ? END,
      reason = CASE WHEN EXISTS (SELECT FROM ${name}_sent) THEN NULL
                    WHEN ? = 'cancelled' THEN COALESCE(reason, ?) ELSE ? END
    WHERE job_id = ? AND status = 'pending')`,
  bindings: [jobId, now, status, status, reason, reason, jobId],
});

/**
 * Frees the slot of a delivery in the statement that records the failure of its attempt, and ends the
 * attempt if it has no outcome: the database may have been away when it started or ended.
 */
export const freeSlotOfFailed = (jobId: string, now: Date): RecordChange => ({
  topics: [],
  optional: true,
  sql: (name) => `${name}_freed AS (
    UPDATE deliveries SET in_flight = false
    WHERE job_id = ? AND status = 'pending' AND leased_until IS NULL
    RETURNING id
  ), ${name} AS (
    ${interruptAttempts('?', `IN (SELECT id FROM ${name}_freed)`)}
    RETURNING number
  )`,
  bindings: [jobId, now],
});

/** Where an attempt sends, with the secrets that sign. */
export type DeliveryEndpoint = {
  webhookId: string;
  tenantId: string;
  endpointUrl: string;
  failingSince: Date | null;
  secret: string;
  previousSecret: string | null;
  previousSecretUntil: Date | null;
};

/** The event that an attempt sends. */
export type DeliveryMessage = {
  eventId: string;
  eventType: string;
  sequence: number;
  eventTenantId: string;
  subjectType: string;
  subjectId: string;
  eventActorId: string;
  data: object;
  eventCreatedAt: Date;
  /** When the delivery was created, or requested again. */
  queuedAt: Date;
};

/** What an attempt sends and where, read when the attempt starts. */
export type StartedDeliveryAttempt = DeliveryEndpoint &
  DeliveryMessage & {
    /** Counts from 1; null when nothing is to be sent. */
    number: number | null;
    enabled: boolean;
  };

/**
 * Starts the next attempt of a delivery, and ends an earlier one that was interrupted. Returns
 * undefined when the delivery has another job or is not pending. `number` is null when nothing is
 * to be sent: the webhook is disabled, or an attempt of this job succeeded and its worker died
 * before it could record that.
 */
export async function startDeliveryAttempt(
  db: Knex,
  { deliveryId, jobId, now }: { deliveryId: string; jobId: string; now: Date },
): Promise<StartedDeliveryAttempt | undefined> {
  const { rows }: { rows: StartedDeliveryAttempt[] } = await prepared(
    db,
    `WITH d AS (
       SELECT d.id, w.id AS "webhookId", w.tenant_id AS "tenantId", w.enabled,
              w.endpoint_url AS "endpointUrl", w.failing_since AS "failingSince",
              w.secret, w.previous_secret AS "previousSecret",
              w.previous_secret_until AS "previousSecretUntil",
              e.id AS "eventId", e.type AS "eventType", e.sequence,
              e.tenant_id AS "eventTenantId", e.subject_type AS "subjectType",
              e.subject_id AS "subjectId", e.actor_id AS "eventActorId",
              e.data, e.created_at AS "eventCreatedAt",
              d.queued_at AS "queuedAt"
       FROM deliveries AS d
       JOIN webhooks AS w ON w.id = d.webhook_id
       JOIN events AS e ON e.id = d.event_id
       WHERE d.id = ? AND d.job_id = ? AND d.status = 'pending'
     ), interrupted AS (
       ${interruptAttempts('?', '= ?')}
     ), started AS (
       INSERT INTO delivery_attempts (delivery_id, number, job_id, started_at)
       SELECT d.id, COALESCE(
                (SELECT max(number) FROM delivery_attempts WHERE delivery_id = d.id), 0) + 1, ?, ?
       FROM d WHERE d.enabled AND NOT EXISTS (
         SELECT FROM delivery_attempts AS a
         WHERE a.delivery_id = d.id AND a.job_id = ? AND ${ATTEMPT_SUCCEEDED})
       RETURNING number
     )
     SELECT d.*, (SELECT number FROM started) AS number FROM d`,
    [deliveryId, jobId, now, deliveryId, jobId, now, jobId],
  );
  return rows[0];
}

/** When the last attempt of a delivery started; undefined if the delivery has another job by now. */
export async function lastAttemptStart(db: Knex, jobId: string): Promise<Date | undefined> {
  const { rows }: { rows: { startedAt: Date }[] } = await prepared(
    db,
    `SELECT a.started_at AS "startedAt"
     FROM deliveries AS d JOIN delivery_attempts AS a ON a.delivery_id = d.id
     WHERE d.job_id = ? ORDER BY a.number DESC LIMIT 1`,
    [jobId],
  );
  return rows[0]?.startedAt;
}

/** The outcome of sending one message. `httpStatus` is null when there was no response. */
export type AttemptOutcome = {
  durationMs: number;
  httpStatus: number | null;
  error: { code: string; message: string } | null;
  requestHeaders: Record<string, string>;
  responseBody: string | null;
  responseTruncated: boolean;
};

/**
 * Records the outcome of an attempt. A failed attempt frees the slot of its delivery. The webhook is not
 * written here: a restore may have locked it for minutes, and an accepted message would be sent again.
 */
export async function finishDeliveryAttempt(
  db: Knex,
  {
    deliveryId,
    number,
    outcome,
    now,
  }: { deliveryId: string; number: number; outcome: AttemptOutcome; now: Date },
): Promise<void> {
  const { durationMs, httpStatus, error, requestHeaders, responseBody, responseTruncated } =
    outcome;
  await prepared(
    db,
    `WITH finished AS (
       UPDATE delivery_attempts SET finished_at = ?, duration_ms = ?, http_status = ?, error = ?,
         request_headers = ?, response_body = ?, response_truncated = ?
       WHERE delivery_id = ? AND number = ?
     )
     UPDATE deliveries SET in_flight = false WHERE id = ? AND ?::boolean`,
    [
      now,
      durationMs,
      httpStatus,
      error && JSON.stringify(error),
      JSON.stringify(requestHeaders),
      responseBody,
      responseTruncated,
      deliveryId,
      number,
      deliveryId,
      error !== null,
    ],
  );
}
