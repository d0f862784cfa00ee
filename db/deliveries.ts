import type { Knex } from './knex.ts';
import type { Change } from './trail.ts';
import { prepared } from './prepared.ts';
import type { DeliveryRetryPolicy, FinalDeliveryStatus } from '../domain/webhooks.ts';

/** Names the lock under which jobs are made for deliveries: one process at a time, so that room is counted right. */
const QUEUE_LOCK = 7_203_116;

export type OwedDelivery = { id: string; webhookId: string; tenantId: string; eventType: string; retryPolicy: DeliveryRetryPolicy };

/** True when deliveries wait for a job. */
export async function hasOwed(db: Knex): Promise<boolean> {
  return (await db('deliveries').where({ status: 'pending', job_id: null }).select('id').first()) !== undefined;
}

/** The lock of `takeOwed`, until the transaction ends; false when another process has it. */
export async function lockQueue(trx: Knex): Promise<boolean> {
  const { rows } = await trx.raw<{ rows: { got: boolean }[] }>('SELECT pg_try_advisory_xact_lock(?) AS got', [QUEUE_LOCK]);
  return rows[0]?.got ?? false;
}

/**
 * Deliveries that may have a job now, at most `limit`, of each webhook so many as it has room for: `room` deliveries
 * under way, `failingRoom` while nothing gets through. Webhooks come in any order, so that all get on.
 */
export async function takeOwed(
  trx: Knex, { room, failingRoom, limit }: { room: number; failingRoom: number; limit: number },
): Promise<OwedDelivery[]> {
  const { rows } = await trx.raw<{ rows: OwedDelivery[] }>(
    `WITH RECURSIVE owing (id) AS (
       (SELECT webhook_id FROM deliveries WHERE status = 'pending' AND job_id IS NULL ORDER BY webhook_id LIMIT 1)
       UNION ALL
       SELECT (SELECT webhook_id FROM deliveries WHERE status = 'pending' AND job_id IS NULL AND webhook_id > owing.id
               ORDER BY webhook_id LIMIT 1)
       FROM owing WHERE owing.id IS NOT NULL
     ), rooms AS (
       SELECT w.id, w.retry_policy, random() AS turn, CASE WHEN w.failing_since IS NULL THEN ?::bigint ELSE ? END
         - (SELECT count(*) FROM deliveries WHERE webhook_id = w.id AND status = 'pending' AND under_way) AS free
       FROM owing JOIN webhooks AS w USING (id) WHERE w.enabled
     )
     SELECT d.id, d.webhook_id AS "webhookId", d.tenant_id AS "tenantId", e.type AS "eventType", r.retry_policy AS "retryPolicy"
     FROM rooms AS r CROSS JOIN LATERAL (
       SELECT id, webhook_id, tenant_id, event_id FROM deliveries
       WHERE status = 'pending' AND job_id IS NULL AND webhook_id = r.id ORDER BY id LIMIT greatest(r.free, 0)
     ) AS d JOIN events AS e ON e.id = d.event_id
     ORDER BY r.turn, d.id LIMIT ?`,
    [room, failingRoom, limit],
  );
  return rows;
}

/** Gives deliveries their jobs. They are under way until an attempt has failed, and again when the next one begins. */
export const assignJobs = async (trx: Knex, pairs: readonly { deliveryId: string; jobId: string }[], now: Date): Promise<void> =>
  void (await trx.raw(
    `UPDATE deliveries AS d SET job_id = p.job_id, under_way = true, updated_at = ? FROM unnest(?::text[], ?::text[]) AS p (id, job_id) WHERE d.id = p.id`,
    [now, pairs.map((p) => p.deliveryId), pairs.map((p) => p.jobId)],
  ));

/** A delivery ends with its job, in the same statement. One that has another job by now is left alone. */
export const deliveryEnded = (jobId: string, status: FinalDeliveryStatus, reason: string | null, now: Date): Change => ({
  topics: [],
  // The first part always has its row: the job ends whatever became of the delivery.
  sql: (name) => `${name} AS (SELECT 1), ${name}_delivery AS (
    UPDATE deliveries SET status = ?, reason = CASE ? WHEN 'succeeded' THEN NULL WHEN 'failed' THEN ? ELSE COALESCE(reason, ?) END, updated_at = ?
    WHERE job_id = ? AND status = 'pending')`,
  bindings: [status, status, reason, reason, now, jobId],
});

/** Everything that an attempt needs, as it is when the attempt begins. */
export type BegunAttempt = {
  number: number | null;
  webhookId: string; tenantId: string; enabled: boolean; endpointUrl: string; failingSince: Date | null;
  secret: string; previousSecret: string | null; previousSecretUntil: Date | null;
  eventId: string; eventType: string; sequence: number; eventTenantId: string; data: object; eventCreatedAt: Date;
};

/**
 * Opens the next attempt of a delivery, and closes one that was cut off. There is no number when nothing is to be
 * sent: the webhook is disabled, or an attempt of this job has succeeded and its worker died before it could say so.
 */
export async function beginAttempt(db: Knex, { deliveryId, jobId, now }: { deliveryId: string; jobId: string; now: Date }): Promise<BegunAttempt | undefined> {
  const { rows }: { rows: BegunAttempt[] } = await prepared(
    db,
    `WITH d AS (
       SELECT d.id, w.id AS "webhookId", w.tenant_id AS "tenantId", w.enabled, w.endpoint_url AS "endpointUrl", w.failing_since AS "failingSince",
              w.secret, w.previous_secret AS "previousSecret", w.previous_secret_until AS "previousSecretUntil",
              e.id AS "eventId", e.type AS "eventType", e.sequence, e.tenant_id AS "eventTenantId", e.data, e.created_at AS "eventCreatedAt"
       FROM deliveries AS d JOIN webhooks AS w ON w.id = d.webhook_id JOIN events AS e ON e.id = d.event_id
       WHERE d.id = ? AND d.job_id = ?
     ), cut AS (
       UPDATE delivery_attempts SET finished_at = ?, error = '{"code":"interrupted","message":"The attempt was cut off"}'
       WHERE delivery_id = ? AND finished_at IS NULL
     ), opened AS (
       INSERT INTO delivery_attempts (delivery_id, number, job_id, started_at)
       SELECT d.id, COALESCE((SELECT max(number) FROM delivery_attempts WHERE delivery_id = d.id), 0) + 1, ?, ?
       FROM d WHERE d.enabled AND NOT EXISTS (
         SELECT FROM delivery_attempts WHERE delivery_id = d.id AND job_id = ? AND http_status BETWEEN 200 AND 299 AND error IS NULL)
       RETURNING number
     ), begun AS (
       UPDATE deliveries SET under_way = true WHERE id = (SELECT id FROM d WHERE enabled) AND NOT under_way
     )
     SELECT d.*, (SELECT number FROM opened) AS number FROM d`,
    [deliveryId, jobId, now, deliveryId, jobId, now, jobId],
  );
  return rows[0];
}

export type AttemptOutcome = {
  durationMs: number; httpStatus: number | null; error: { code: string; message: string } | null;
  requestHeaders: Record<string, string>; answer: string | null; answerTruncated: boolean;
};

/** Records what came of an attempt, and since when its webhook only fails. One that failed makes room for another delivery. */
export async function endAttempt(
  db: Knex, { deliveryId, number, webhookId, outcome, now }: { deliveryId: string; number: number; webhookId: string; outcome: AttemptOutcome; now: Date },
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
     UPDATE webhooks SET failing_since = ? WHERE id = ? AND (failing_since IS NULL) = ?::boolean`,
    [
      now, durationMs, httpStatus, error && JSON.stringify(error), JSON.stringify(requestHeaders), answer, answerTruncated,
      deliveryId, number, deliveryId, error !== null, error ? now : null, webhookId, error !== null,
    ],
  );
}

/** Pending deliveries that are to be cancelled, since their webhook was disabled. */
const TO_CANCEL = `d.webhook_id = w.id AND d.status = 'pending' AND d.reason IS NULL AND (NOT w.enabled OR d.created_at <= w.cancel_before)`;

/** True when webhooks were disabled whose waiting deliveries are not cancelled yet. */
export async function isCancelling(db: Knex): Promise<boolean> {
  return (await db('webhooks').whereNotNull('cancel_before').select('id').first()) !== undefined;
}

/** `reason`: what the cancelled deliveries say. */
type Cancelling = { id: string; tenantId: string; reason: string };

/** Webhooks whose waiting deliveries are to be cancelled; forgets those that have none left. */
export async function findCancelling(db: Knex): Promise<Cancelling[]> {
  await db.raw(`UPDATE webhooks AS w SET cancel_before = NULL WHERE cancel_before IS NOT NULL AND NOT EXISTS (SELECT FROM deliveries AS d WHERE ${TO_CANCEL})`);
  const { rows } = await db.raw<{ rows: Cancelling[] }>(
    `SELECT id, tenant_id AS "tenantId", 'webhook_' || CASE
       WHEN deleted_at IS NOT NULL THEN 'deleted' WHEN disabled_reason IN ('gone', 'failing') THEN disabled_reason ELSE 'disabled' END AS reason
     FROM webhooks WHERE cancel_before IS NOT NULL ORDER BY id LIMIT 20`,
  );
  return rows;
}

/** Some of a webhook's waiting deliveries that are to be cancelled, with the jobs that they have. */
export async function findToCancel(db: Knex, webhookId: string, limit: number): Promise<{ id: string; jobId: string | null }[]> {
  const { rows } = await db.raw<{ rows: { id: string; jobId: string | null }[] }>(
    `SELECT d.id, d.job_id AS "jobId" FROM deliveries AS d JOIN webhooks AS w ON w.id = ? AND w.cancel_before IS NOT NULL WHERE ${TO_CANCEL} ORDER BY d.id LIMIT ?`,
    [webhookId, limit],
  );
  return rows;
}

/** Notes why deliveries are cancelled; those without a job are cancelled with that. Lock their jobs before. Returns how many. */
export async function markCancelled(trx: Knex, ids: readonly string[], reason: string, now: Date): Promise<number> {
  const { rowCount } = await trx.raw<{ rowCount: number }>(
    `UPDATE deliveries SET reason = ?, updated_at = ?, status = CASE WHEN job_id IS NULL THEN 'cancelled' ELSE status END
     WHERE id = ANY (?::text[]) AND status = 'pending' AND reason IS NULL`,
    [reason, now, [...ids]],
  );
  return rowCount;
}
