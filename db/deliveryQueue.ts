import type { Knex } from './core/knex.ts';
import type { DeliveryRetryPolicy } from '../domain/webhooks/webhooks.ts';

/** Names the lock under which jobs are made for deliveries: one process at a time, so that room is counted right. */
const QUEUE_LOCK = 7_203_116;

export type OwedDelivery = {
  id: string;
  webhookId: string;
  tenantId: string;
  retryPolicy: DeliveryRetryPolicy;
};

/** True when deliveries wait for a job. */
export async function hasOwed(db: Knex): Promise<boolean> {
  return (
    (await db('deliveries').where({ status: 'pending', job_id: null }).select('id').first()) !==
    undefined
  );
}

/** The lock of `takeOwed`, until the transaction ends; false when another process has it. */
export async function lockQueue(trx: Knex): Promise<boolean> {
  const { rows } = await trx.raw<{ rows: { got: boolean }[] }>(
    'SELECT pg_try_advisory_xact_lock(?) AS got',
    [QUEUE_LOCK],
  );
  return rows[0]?.got ?? false;
}

/**
 * Deliveries that may have a job now, at most `limit`, of each webhook so many as it has room for: `room` deliveries
 * under way, `failingRoom` while nothing gets through. Webhooks come in any order, so that all get on.
 *
 * The recursive part finds the webhooks that owe something with one look into the index for each of them, however many
 * deliveries each owes.
 */
export async function takeOwed(
  trx: Knex,
  { room, failingRoom, limit }: { room: number; failingRoom: number; limit: number },
): Promise<OwedDelivery[]> {
  const { rows } = await trx.raw<{ rows: OwedDelivery[] }>(
    `WITH RECURSIVE owing (id) AS (
       (SELECT webhook_id FROM deliveries WHERE status = 'pending' AND job_id IS NULL ORDER BY webhook_id LIMIT 1)
       UNION ALL
       SELECT (SELECT webhook_id FROM deliveries WHERE status = 'pending' AND job_id IS NULL AND webhook_id > owing.id
               ORDER BY webhook_id LIMIT 1)
       FROM owing WHERE owing.id IS NOT NULL
     ), rooms AS (
       SELECT w.id, w.retry_policy, w.cancel_before, random() AS turn, CASE WHEN w.failing_since IS NULL THEN ?::bigint ELSE ? END
         - (SELECT count(*) FROM deliveries WHERE webhook_id = w.id AND status = 'pending' AND under_way) AS free
       FROM owing JOIN webhooks AS w USING (id) WHERE w.enabled
     )
     SELECT d.id, d.webhook_id AS "webhookId", d.tenant_id AS "tenantId", r.retry_policy AS "retryPolicy"
     FROM rooms AS r CROSS JOIN LATERAL (
       SELECT id, webhook_id, tenant_id FROM deliveries
       WHERE status = 'pending' AND job_id IS NULL AND webhook_id = r.id AND (r.cancel_before IS NULL OR owed_at > r.cancel_before)
       ORDER BY id LIMIT greatest(r.free, 0) FOR UPDATE SKIP LOCKED
     ) AS d
     ORDER BY r.turn, d.id LIMIT ?`,
    [room, failingRoom, limit],
  );
  return rows;
}

/** Gives deliveries their jobs. Those that are `underWay` have their place already, others take one when their attempt begins. */
export const assignJobs = async (
  trx: Knex,
  pairs: readonly { deliveryId: string; jobId: string }[],
  underWay: boolean,
  now: Date,
): Promise<void> =>
  void (await trx.raw(
    `UPDATE deliveries AS d SET job_id = p.job_id, under_way = ?, updated_at = ? FROM unnest(?::text[], ?::text[]) AS p (id, job_id) WHERE d.id = p.id`,
    [underWay, now, pairs.map((p) => p.deliveryId), pairs.map((p) => p.jobId)],
  ));

/**
 * Takes a place for an attempt of the delivery that this job makes, where it has none yet: a retry that is due. Returns
 * null when it may begin, else how many deliveries of its webhook share the places and how many places there are.
 */
export async function takePlace(
  db: Knex,
  { jobId, room, failingRoom }: { jobId: string; room: number; failingRoom: number },
): Promise<{ waiting: number; places: number } | null> {
  const delivery = await db('deliveries')
    .where({ job_id: jobId, status: 'pending', under_way: false })
    .first<{ id: string; webhook_id: string } | undefined>('id', 'webhook_id');
  if (!delivery) return null;
  return db.transaction(async (trx) => {
    // Alone with the webhook, so that its places are counted right.
    await trx.raw(`SELECT pg_advisory_xact_lock(hashtextextended('places:' || ?, 0))`, [
      delivery.webhook_id,
    ]);
    const {
      rows: [found],
    } = await trx.raw<{ rows: { waiting: number; taken: number; places: number }[] }>(
      `SELECT count(*) FILTER (WHERE d.under_way) AS taken, count(*) AS waiting, CASE WHEN w.failing_since IS NULL THEN ?::bigint ELSE ? END AS places
       FROM webhooks AS w LEFT JOIN deliveries AS d ON d.webhook_id = w.id AND d.status = 'pending' AND d.job_id IS NOT NULL
       WHERE w.id = ? GROUP BY w.id`,
      [room, failingRoom, delivery.webhook_id],
    );
    if (!found || found.taken >= found.places) return found ?? null;
    await trx('deliveries')
      .where({ id: delivery.id, job_id: jobId, status: 'pending' })
      .update({ under_way: true });
    return null;
  });
}

/** Pending deliveries that are to be cancelled, since their webhook was disabled when they were owed, or is now. */
const TO_CANCEL = `d.webhook_id = w.id AND d.status = 'pending' AND d.reason IS NULL AND (NOT w.enabled OR d.owed_at <= w.cancel_before)`;

/** True when webhooks were disabled whose waiting deliveries are not cancelled yet. */
export async function isCancelling(db: Knex): Promise<boolean> {
  return (await db('webhooks').whereNotNull('cancel_before').select('id').first()) !== undefined;
}

/** Forgets the webhooks of which no delivery is left to be cancelled. */
export const forgetCancelled = async (db: Knex): Promise<void> =>
  void (await db.raw(
    `UPDATE webhooks AS w SET cancel_before = NULL, cancel_reason = NULL
     WHERE cancel_before IS NOT NULL AND NOT EXISTS (SELECT FROM deliveries AS d WHERE ${TO_CANCEL})`,
  ));

/** Webhooks whose waiting deliveries are to be cancelled, and what these say then. */
export async function findCancelling(
  db: Knex,
): Promise<{ id: string; tenantId: string; reason: string }[]> {
  const { rows } = await db.raw<{ rows: { id: string; tenantId: string; reason: string }[] }>(
    'SELECT id, tenant_id AS "tenantId", cancel_reason AS reason FROM webhooks WHERE cancel_before IS NOT NULL ORDER BY id LIMIT 20',
  );
  return rows;
}

/** Some of a webhook's waiting deliveries that are to be cancelled, with the jobs that they have. */
export async function findToCancel(
  db: Knex,
  webhookId: string,
  limit: number,
): Promise<{ id: string; jobId: string | null }[]> {
  const { rows } = await db.raw<{ rows: { id: string; jobId: string | null }[] }>(
    `SELECT d.id, d.job_id AS "jobId" FROM deliveries AS d JOIN webhooks AS w ON w.id = ? AND w.cancel_before IS NOT NULL WHERE ${TO_CANCEL} ORDER BY d.id LIMIT ?`,
    [webhookId, limit],
  );
  return rows;
}

/**
 * Notes why deliveries are cancelled; those without a job are cancelled with that. Lock their jobs before. One that has got
 * a job meanwhile is left for the next time. Returns how many.
 */
export async function markCancelled(
  trx: Knex,
  found: readonly { id: string; jobId: string | null }[],
  reason: string,
  now: Date,
): Promise<number> {
  const { rowCount } = await trx.raw<{ rowCount: number }>(
    `UPDATE deliveries AS d SET reason = ?, updated_at = ?, status = CASE WHEN d.job_id IS NULL THEN 'cancelled' ELSE d.status END
     FROM unnest(?::text[], ?::text[]) AS f (id, job_id)
     WHERE d.id = f.id AND d.job_id IS NOT DISTINCT FROM f.job_id AND d.status = 'pending' AND d.reason IS NULL`,
    [
      reason,
      now,
      found.map(({ id }) => id),
      found.map(({ jobId }) => jobId) as unknown as string[],
    ],
  );
  return rowCount;
}
