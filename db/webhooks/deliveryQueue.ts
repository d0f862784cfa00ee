import { lockKeySql, lockNameUntilCommit, tryLockUntilCommit } from '../core/advisoryLocks.ts';
import type { Knex } from '../core/knex.ts';
import type { DeliveryRetryPolicy } from '../../domain/webhooks/webhooks.ts';

/** A delivery that gets a job, with the retry policy of its webhook. */
export type PendingDelivery = {
  id: string;
  webhookId: string;
  tenantId: string;
  retryPolicy: DeliveryRetryPolicy;
};

/** How many deliveries of one webhook may be in flight, normally and while every attempt fails. */
export type SlotLimits = { maxInFlight: number; maxInFlightFailing: number };

/** The state of a webhook that has no free slot: its slots, and the deliveries that share them. */
export type SlotContention = { waiting: number; slots: number };

/** SQL: the free slots of the webhook `w`. Bindings: the two limits. */
const FREE_SLOTS = `CASE WHEN w.failing_since IS NULL THEN ?::bigint ELSE ? END - (
                SELECT count(*) FROM deliveries
                WHERE webhook_id = w.id AND status = 'pending' AND in_flight)`;

/** True when deliveries wait for a job. */
export async function hasPendingDeliveries(db: Knex): Promise<boolean> {
  const first = await db('deliveries').where({ status: 'pending', job_id: null }).first('id');
  return first !== undefined;
}

/** Takes the lock of the queue until the transaction ends; false when another process has it. */
export const lockQueue = (trx: Knex): Promise<boolean> => tryLockUntilCommit(trx, 'deliveryQueue');

/**
 * Locks up to `limit` pending deliveries that may get a job, and of each webhook only as many as
 * it has free slots. The webhooks come in random order, so that none is always last. The caller
 * holds the lock of the queue and assigns the jobs in the same transaction.
 */
export async function claimPendingDeliveries(
  trx: Knex,
  limits: SlotLimits & { limit: number },
): Promise<PendingDelivery[]> {
  const webhookIds = await lockWebhooksWithFreeSlots(trx, limits);
  if (webhookIds.length === 0) return [];
  // A second statement: its snapshot includes the slots that were taken before the locks.
  const { rows } = await trx.raw<{ rows: PendingDelivery[] }>(
    `WITH candidates AS (
       SELECT w.id, w.retry_policy, w.cancel_before, random() AS position,
              ${FREE_SLOTS} AS free
       FROM webhooks AS w WHERE w.id = ANY (?::text[]) AND w.enabled
     )
     SELECT d.id, d.webhook_id AS "webhookId", d.tenant_id AS "tenantId",
            c.retry_policy AS "retryPolicy"
     FROM candidates AS c CROSS JOIN LATERAL (
       SELECT id, webhook_id, tenant_id FROM deliveries
       WHERE status = 'pending' AND job_id IS NULL AND webhook_id = c.id
         AND (c.cancel_before IS NULL OR queued_at > c.cancel_before)
       ORDER BY id LIMIT greatest(c.free, 0) FOR UPDATE SKIP LOCKED
     ) AS d
     ORDER BY c.position, d.id LIMIT ?`,
    [limits.maxInFlight, limits.maxInFlightFailing, webhookIds, limits.limit],
  );
  return rows;
}

/**
 * Finds enabled webhooks that have pending deliveries and free slots, and locks their slots, so
 * that no retry takes one until the transaction ends. A webhook whose slots are locked is left for
 * the next round.
 *
 * The recursive part is a loose index scan: it finds the distinct webhooks with one index probe
 * each, however many deliveries are pending.
 */
async function lockWebhooksWithFreeSlots(
  trx: Knex,
  { maxInFlight, maxInFlightFailing, limit }: SlotLimits & { limit: number },
): Promise<string[]> {
  const { rows } = await trx.raw<{ rows: { id: string }[] }>(
    `WITH RECURSIVE pending (id) AS (
       (SELECT webhook_id FROM deliveries WHERE status = 'pending' AND job_id IS NULL
        ORDER BY webhook_id LIMIT 1)
       UNION ALL
       SELECT (SELECT webhook_id FROM deliveries
               WHERE status = 'pending' AND job_id IS NULL AND webhook_id > pending.id
               ORDER BY webhook_id LIMIT 1)
       FROM pending WHERE pending.id IS NOT NULL
     ), candidates AS MATERIALIZED (
       SELECT w.id FROM pending JOIN webhooks AS w USING (id)
       WHERE w.enabled AND ${FREE_SLOTS} > 0
       ORDER BY random() LIMIT ?
     )
     SELECT id FROM candidates
     WHERE pg_try_advisory_xact_lock(${lockKeySql('webhookSlots', 'id')})`,
    [maxInFlight, maxInFlightFailing, limit],
  );
  return rows.map(({ id }) => id);
}

/**
 * Assigns jobs to deliveries. A delivery that is `inFlight` occupies a slot from now on; any other
 * one takes a slot when its attempt starts.
 */
export const assignJobs = async (
  trx: Knex,
  assignments: readonly { deliveryId: string; jobId: string }[],
  inFlight: boolean,
  now: Date,
): Promise<void> =>
  void (await trx.raw(
    `UPDATE deliveries AS d SET job_id = p.job_id, in_flight = ?, updated_at = ?
     FROM unnest(?::text[], ?::text[]) AS p (id, job_id) WHERE d.id = p.id`,
    [inFlight, now, assignments.map((p) => p.deliveryId), assignments.map((p) => p.jobId)],
  ));

/**
 * Takes a slot for the delivery of a job, unless it occupies one already. Returns null when the
 * attempt may start, otherwise why not.
 */
export async function takeSlot(
  db: Knex,
  { jobId, maxInFlight, maxInFlightFailing }: SlotLimits & { jobId: string },
): Promise<SlotContention | null> {
  const delivery = await db('deliveries')
    .where({ job_id: jobId, status: 'pending', in_flight: false })
    .first<{ id: string; webhook_id: string } | undefined>('id', 'webhook_id');
  if (!delivery) return null;
  return db.transaction(async (trx) => {
    await lockNameUntilCommit(trx, 'webhookSlots', delivery.webhook_id);
    const {
      rows: [found],
    } = await trx.raw<{ rows: (SlotContention & { used: number })[] }>(
      `SELECT count(*) FILTER (WHERE d.in_flight) AS used, count(*) AS waiting,
              CASE WHEN w.failing_since IS NULL THEN ?::bigint ELSE ? END AS slots
       FROM webhooks AS w
       LEFT JOIN deliveries AS d
         ON d.webhook_id = w.id AND d.status = 'pending' AND d.job_id IS NOT NULL
       WHERE w.id = ? GROUP BY w.id`,
      [maxInFlight, maxInFlightFailing, delivery.webhook_id],
    );
    if (!found) return null;
    if (found.used >= found.slots) return { waiting: found.waiting, slots: found.slots };
    await trx('deliveries')
      .where({ id: delivery.id, job_id: jobId, status: 'pending' })
      .update({ in_flight: true });
    return null;
  });
}

/**
 * SQL: the pending deliveries `d` to cancel of the webhook `w`, because it is disabled, or was
 * disabled after they were queued.
 */
const CANCELLABLE = `d.webhook_id = w.id AND d.status = 'pending' AND d.reason IS NULL
  AND (NOT w.enabled OR d.queued_at <= w.cancel_before)`;

/** True when webhooks were disabled whose pending deliveries are not cancelled yet. */
export async function hasCancellingWebhooks(db: Knex): Promise<boolean> {
  return (await db('webhooks').whereNotNull('cancel_before').first('id')) !== undefined;
}

/** Ends the cancellation of the webhooks that have no delivery left to cancel. */
export const clearFinishedCancellations = async (db: Knex): Promise<void> =>
  void (await db.raw(
    `UPDATE webhooks AS w SET cancel_before = NULL, cancel_reason = NULL
     WHERE cancel_before IS NOT NULL
       AND NOT EXISTS (SELECT FROM deliveries AS d WHERE ${CANCELLABLE})`,
  ));

/** Up to 20 webhooks whose pending deliveries are to be cancelled, with the reason to record. */
export async function findCancellingWebhooks(
  db: Knex,
): Promise<{ id: string; tenantId: string; reason: string }[]> {
  const { rows } = await db.raw<{ rows: { id: string; tenantId: string; reason: string }[] }>(
    `SELECT id, tenant_id AS "tenantId", cancel_reason AS reason FROM webhooks
     WHERE cancel_before IS NOT NULL ORDER BY id LIMIT 20`,
  );
  return rows;
}

/** Up to `limit` deliveries of a webhook that are to be cancelled, with their jobs. */
export async function findCancellableDeliveries(
  db: Knex,
  webhookId: string,
  limit: number,
): Promise<{ id: string; jobId: string | null }[]> {
  const { rows } = await db.raw<{ rows: { id: string; jobId: string | null }[] }>(
    `SELECT d.id, d.job_id AS "jobId" FROM deliveries AS d
     JOIN webhooks AS w ON w.id = ? AND w.cancel_before IS NOT NULL
     WHERE ${CANCELLABLE} ORDER BY d.id LIMIT ?`,
    [webhookId, limit],
  );
  return rows;
}

/**
 * Records why deliveries are cancelled, and cancels those that have no job; the others end with
 * their jobs. A delivery that got another job since it was read is skipped. The caller locks the
 * jobs first. Returns the number of deliveries.
 */
export async function markDeliveriesCancelled(
  trx: Knex,
  deliveries: readonly { id: string; jobId: string | null }[],
  reason: string,
  now: Date,
): Promise<number> {
  const { rowCount } = await trx.raw<{ rowCount: number }>(
    `UPDATE deliveries AS d SET reason = ?, updated_at = ?,
       status = CASE WHEN d.job_id IS NULL THEN 'cancelled' ELSE d.status END
     FROM unnest(?::text[], ?::text[]) AS f (id, job_id)
     WHERE d.id = f.id AND d.job_id IS NOT DISTINCT FROM f.job_id
       AND d.status = 'pending' AND d.reason IS NULL`,
    [
      reason,
      now,
      deliveries.map(({ id }) => id),
      deliveries.map(({ jobId }) => jobId) as unknown as string[],
    ],
  );
  return rowCount;
}
