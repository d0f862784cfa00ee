import { shareOut } from '../../domain/dispatch/shares.ts';
import { tryLockUntilCommit } from '../core/advisoryLocks.ts';
import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';
import type { DeliveryRetryPolicy } from '../../domain/webhooks/webhooks.ts';
import {
  IN_FLIGHT,
  readSlotDemands,
  WEBHOOK_STATE,
  type CandidateWebhook,
  type SlotLimits,
  type SlotShares,
} from './deliverySlots.ts';

/** A delivery that gets a job, with the retry policy of its webhook. */
export type PendingDelivery = {
  id: string;
  webhookId: string;
  tenantId: string;
  retryPolicy: DeliveryRetryPolicy;
};

/** True when deliveries wait for a job. */
export async function hasPendingDeliveries(db: Knex): Promise<boolean> {
  const { rows }: { rows: object[] } = await prepared(
    db,
    `SELECT 1 FROM deliveries WHERE status = 'pending' AND job_id IS NULL LIMIT 1`,
    [],
  );
  return rows.length > 0;
}

/** Takes the lock of the queue until the transaction ends; false when another process has it. */
export const lockQueue = (trx: Knex): Promise<boolean> => tryLockUntilCommit(trx, 'deliveryQueue');

/**
 * Locks up to `limit` pending deliveries that may get a job: of each webhook as many as it has free
 * slots, and of each tenant as many as its share allows and, for webhooks that are not working, as
 * it may try, webhook by webhook in turn. The caller holds the lock of the queue and assigns the
 * jobs in the same transaction.
 */
export async function claimPendingDeliveries(
  trx: Knex,
  { limit, capacity, sharePercent, ...limits }: SlotLimits & SlotShares & { limit: number },
): Promise<PendingDelivery[]> {
  const webhooks = await findWebhooksWithFreeSlots(trx, limits, limit);
  if (webhooks.length === 0) return [];
  const { demands, trialsLeft } = await readSlotDemands(trx, webhooks, limits);
  const grants = shareOut(demands, { capacity, sharePercent });
  const candidates = webhooks.flatMap(({ id, tenantId, state, free }) => {
    const granted = grants.get(tenantId);
    if (granted === undefined) return [];
    const left = state === 'working' ? granted : trialsLeft(tenantId)[state];
    return [{ id, state, granted, left, most: Math.min(free, granted) }];
  });
  if (candidates.length === 0) return [];
  const { rows }: { rows: PendingDelivery[] } = await prepared(
    trx,
    `WITH candidates AS (
       SELECT w.id, w.retry_policy, w.cancel_before, random() AS position,
              c.state, c.granted, c.left_in_state, c.most
       FROM unnest(?::text[], ?::text[], ?::integer[], ?::integer[], ?::integer[])
         AS c (id, state, granted, left_in_state, most)
       JOIN webhooks AS w USING (id) WHERE w.enabled
     ), ranked AS (
       SELECT d.*, c.retry_policy, c.granted, c.left_in_state, c.position,
              row_number() OVER (
                PARTITION BY d.tenant_id, c.state ORDER BY d.nth, c.position) AS nth_of_state
       FROM candidates AS c CROSS JOIN LATERAL (
         SELECT locked.*, row_number() OVER (ORDER BY id) AS nth FROM (
           SELECT id, webhook_id, tenant_id FROM deliveries
           WHERE status = 'pending' AND job_id IS NULL AND webhook_id = c.id
             AND (c.cancel_before IS NULL OR queued_at > c.cancel_before)
           ORDER BY id LIMIT c.most FOR UPDATE SKIP LOCKED
         ) AS locked
       ) AS d
     ), allowed AS (
       SELECT *, row_number() OVER (
         PARTITION BY tenant_id ORDER BY nth, position) AS nth_of_tenant
       FROM ranked WHERE nth_of_state <= left_in_state
     )
     SELECT id, webhook_id AS "webhookId", tenant_id AS "tenantId", retry_policy AS "retryPolicy"
     FROM allowed WHERE nth_of_tenant <= granted
     ORDER BY nth_of_tenant, id LIMIT ?`,
    [
      candidates.map(({ id }) => id),
      candidates.map(({ state }) => state),
      candidates.map(({ granted }) => granted),
      candidates.map(({ left }) => left),
      candidates.map(({ most }) => most),
      limit,
    ],
  );
  return rows;
}

/**
 * Finds enabled webhooks that have pending deliveries and free slots, of each tenant in turn.
 *
 * The recursive part is a loose index scan: it finds the distinct webhooks with one index probe
 * each, however many deliveries are pending.
 */
async function findWebhooksWithFreeSlots(
  trx: Knex,
  { maxInFlight, maxInFlightFailing }: SlotLimits,
  limit: number,
): Promise<CandidateWebhook[]> {
  const { rows }: { rows: CandidateWebhook[] } = await prepared(
    trx,
    `WITH RECURSIVE pending (id) AS (
       (SELECT webhook_id FROM deliveries WHERE status = 'pending' AND job_id IS NULL
        ORDER BY webhook_id LIMIT 1)
       UNION ALL
       SELECT (SELECT webhook_id FROM deliveries
               WHERE status = 'pending' AND job_id IS NULL AND webhook_id > pending.id
               ORDER BY webhook_id LIMIT 1)
       FROM pending WHERE pending.id IS NOT NULL
     ), enabled AS MATERIALIZED (
       SELECT w.id, w.tenant_id, ${WEBHOOK_STATE} AS state, ${IN_FLIGHT} AS in_flight
       FROM pending JOIN webhooks AS w USING (id) WHERE w.enabled
     ), free AS (
       SELECT id, tenant_id, state,
              CASE state WHEN 'working' THEN ?::bigint ELSE ? END - in_flight AS free
       FROM enabled
     ), chosen AS (
       SELECT * FROM free WHERE free > 0
       ORDER BY row_number() OVER (PARTITION BY tenant_id ORDER BY random()), random() LIMIT ?
     )
     SELECT c.id, c.tenant_id AS "tenantId", c.state, c.free, (
       SELECT count(*) FROM (
         SELECT FROM deliveries
         WHERE status = 'pending' AND job_id IS NULL AND webhook_id = c.id LIMIT c.free
       ) AS counted
     ) AS waiting
     FROM chosen AS c`,
    [maxInFlight, maxInFlightFailing, limit],
  );
  return rows;
}

/** Assigns a job to a delivery, which takes a slot when its attempt starts. */
export const assignJob = async (
  trx: Knex,
  { deliveryId, jobId }: { deliveryId: string; jobId: string },
  now: Date,
): Promise<void> =>
  void (await trx('deliveries')
    .where({ id: deliveryId })
    .update({ job_id: jobId, in_flight: false, leased_until: null, updated_at: now }));

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
