import { shareOut } from '../../domain/dispatch/shares.ts';
import { LOCKS } from '../core/advisoryLocks.ts';
import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { DeliveryRetryPolicy } from '../../domain/webhooks/webhooks.ts';
import type { DeliveryEndpoint, DeliveryMessage } from './deliveryAttempts.ts';
import {
  HELD_SLOTS,
  IN_FLIGHT,
  slotDemands,
  WEBHOOK_STATE,
  type CandidateWebhook,
  type HeldSlots,
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

/** A claimed delivery, with what its first attempt sends and where. */
export type ClaimedDelivery = PendingDelivery &
  DeliveryEndpoint &
  DeliveryMessage & { /** Of the attempt: 1 unless there were others. */ number: number };

/**
 * Claims up to `limit` pending deliveries that may get a job: of each webhook as many as it has free
 * slots, and of each tenant as many as its share allows and, for webhooks that are not working, as
 * it may try, webhook by webhook in turn. A webhook that is only probed gets its oldest delivery, or its newest with
 * `probesNewest`: its endpoint may reject all the oldest ones, and accept others. `areLeft`: others wait, and not only for the next probe, or another
 * process is claiming.
 *
 * The transaction has the lock of the queue, and locks the webhooks, before the deliveries as everywhere:
 * one that disables a webhook waits, and then finds all its deliveries. The caller assigns the jobs in the
 * same transaction.
 */
export async function claimPendingDeliveries(
  trx: Knex,
  {
    limit,
    capacity,
    sharePercent,
    probesNewest,
    ...limits
  }: SlotLimits & SlotShares & { limit: number; probesNewest: boolean },
): Promise<{ claimed: ClaimedDelivery[]; areLeft: boolean }> {
  const { isLocked, areDue, pending, ...read } = await lockAndReadQueue(trx, limits, limit);
  if (!isLocked) return { claimed: [], areLeft: true };
  const none = { claimed: [], areLeft: areDue };
  const { held } = read;
  const webhooks = await lockProbes(trx, read.webhooks);
  if (webhooks.length === 0) return none;
  const { demands, trialsLeft } = slotDemands(webhooks, held, limits);
  const grants = shareOut(demands, { capacity, sharePercent });
  const candidates = webhooks.flatMap(({ id, tenantId, state, free, isProbe }) => {
    const granted = grants.get(tenantId);
    if (granted === undefined) return [];
    const left = state === 'working' ? granted : trialsLeft(tenantId)[state];
    const newest = isProbe && probesNewest;
    return [{ id, state, granted, left, most: Math.min(free, granted), newest }];
  });
  if (candidates.length === 0) return none;
  const { rows: claimed }: { rows: ClaimedDelivery[] } = await prepared(trx, CLAIM, [
    candidates.map(({ id }) => id),
    candidates.map(({ state }) => state),
    candidates.map(({ granted }) => granted),
    candidates.map(({ left }) => left),
    candidates.map(({ most }) => most),
    candidates.map(({ newest }) => newest),
    limit,
  ]);
  await markProbes(trx, webhooks, claimed);
  return { claimed, areLeft: pending > claimed.length };
}

/**
 * Locks the webhooks of which a probe may start, before the deliveries: those change. Returns the others and the
 * locked ones; one that another transaction has locked is probed later.
 */
async function lockProbes(
  trx: Knex,
  webhooks: readonly CandidateWebhook[],
): Promise<CandidateWebhook[]> {
  const probes = webhooks.filter(({ isProbe }) => isProbe).map(({ id }) => id);
  if (probes.length === 0) return [...webhooks];
  const { rows }: { rows: { id: string }[] } = await prepared(
    trx,
    `SELECT id FROM webhooks WHERE id = ANY (?::text[]) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED`,
    [probes],
  );
  const locked = new Set(rows.map(({ id }) => id));
  return webhooks.filter(({ id, isProbe }) => !isProbe || locked.has(id));
}

/** Notes when probes start. Retries do not count: they must not keep the deliveries that wait from their turn. */
async function markProbes(
  trx: Knex,
  webhooks: readonly CandidateWebhook[],
  claimed: readonly ClaimedDelivery[],
): Promise<void> {
  const started = new Set(claimed.map(({ webhookId }) => webhookId));
  const probed = webhooks.filter(({ id, isProbe }) => isProbe && started.has(id));
  if (probed.length === 0) return;
  await prepared(
    trx,
    `UPDATE webhooks SET probed_at = clock_timestamp() WHERE id = ANY (?::text[])`,
    [probed.map(({ id }) => id)],
  );
}

/** SQL: the deliveries of the candidate `c` that may start, if a condition is true. */
const pendingOf = (condition: string): string =>
  `SELECT id, webhook_id, tenant_id, event_id, queued_at FROM deliveries
   WHERE ${condition} AND status = 'pending' AND job_id IS NULL AND webhook_id = c.id
     AND (c.cancel_before IS NULL OR queued_at > c.cancel_before)`;

/** SQL: locks candidates, and as many of their deliveries as they may start. */
const CLAIM = `WITH asked AS (
    SELECT * FROM unnest(?::text[], ?::text[], ?::integer[], ?::integer[], ?::integer[], ?::boolean[])
      AS c (id, state, granted, left_in_state, most, newest)
  ), webhook AS MATERIALIZED (
    SELECT id, tenant_id, retry_policy, cancel_before, endpoint_url, failing_since, secret,
           previous_secret, previous_secret_until
    FROM webhooks WHERE id IN (SELECT id FROM asked) AND enabled ORDER BY id FOR SHARE
  ), candidates AS (
    SELECT w.id, w.cancel_before, random() AS position, c.state, c.granted, c.left_in_state, c.most,
           c.newest
    FROM asked AS c JOIN webhook AS w USING (id)
  ), ranked AS (
    SELECT d.*, c.granted, c.left_in_state, c.position,
           row_number() OVER (
             PARTITION BY d.tenant_id, c.state ORDER BY d.nth, c.position) AS nth_of_state
    FROM candidates AS c CROSS JOIN LATERAL (
      SELECT locked.*, row_number() OVER (ORDER BY id) AS nth FROM (
        SELECT * FROM (${pendingOf('NOT c.newest')} ORDER BY id LIMIT c.most FOR UPDATE SKIP LOCKED) AS oldest
        UNION ALL
        SELECT * FROM (${pendingOf('c.newest')} ORDER BY id DESC LIMIT c.most FOR UPDATE SKIP LOCKED) AS newest
      ) AS locked
    ) AS d
  ), allowed AS (
    SELECT *, row_number() OVER (PARTITION BY tenant_id ORDER BY nth, position) AS nth_of_tenant
    FROM ranked WHERE nth_of_state <= left_in_state
  )
  SELECT d.id, d.webhook_id AS "webhookId", d.tenant_id AS "tenantId", w.retry_policy AS "retryPolicy",
         w.endpoint_url AS "endpointUrl", w.failing_since AS "failingSince", w.secret,
         w.previous_secret AS "previousSecret", w.previous_secret_until AS "previousSecretUntil",
         e.id AS "eventId", e.type AS "eventType", e.sequence, e.tenant_id AS "eventTenantId",
         e.subject_type AS "subjectType", e.subject_id AS "subjectId", e.actor_id AS "eventActorId", e.data,
         e.created_at AS "eventCreatedAt", d.queued_at AS "queuedAt", COALESCE((
           SELECT max(t.number) FROM delivery_attempts AS t WHERE t.delivery_id = d.id), 0) + 1 AS number
  FROM allowed AS d JOIN webhook AS w ON w.id = d.webhook_id JOIN events AS e ON e.id = d.event_id
  WHERE d.nth_of_tenant <= d.granted ORDER BY d.nth_of_tenant, d.id LIMIT ?`;

/** The setting in which a transaction notes whether it has the lock of the queue. */
const HAS_LOCK = 'holdfast.has_queue';

type QueueState = {
  isLocked: boolean;
  /** True when deliveries of others wait than of webhooks that were probed a moment ago. */
  areDue: boolean;
  /** The number of deliveries that wait for a job, up to one more than can be claimed. */
  pending: number;
  webhooks: CandidateWebhook[];
  held: HeldSlots[];
};

/**
 * SQL: since when the endpoint of the webhook `w` cannot be reached; null if it can.
 * until 0.4: `w.unreachable_since` is enough; processes of version 0.2 only write since when it fails, which is never later.
 */
const UNREACHABLE_SINCE = `CASE WHEN w.failing_since IS NOT NULL AND w.unreachable_since IS NOT NULL
  THEN GREATEST(w.failing_since, w.unreachable_since) END`;

/** SQL: since when the endpoint of the webhook `w` cannot be reached, or fails. */
const FAILING_SINCE = `COALESCE(${UNREACHABLE_SINCE}, w.failing_since)`;

/**
 * SQL: the time between two probes of the webhook `w`: a tenth of the time for which it cannot be reached, or fails. So
 * it is found to work again within a tenth of its outage, at most an hour, and a long outage starts few deliveries.
 */
const PROBE_INTERVAL = `LEAST(GREATEST(
  (clock_timestamp() - ${FAILING_SINCE}) / 10,
  interval '5 seconds'), interval '1 hour')`;

/**
 * SQL: the enabled webhooks with pending deliveries, and how many of these may get a job. Bindings: the limits.
 * A webhook with as many deliveries that have jobs as it may have is only probed: each of them has a workflow
 * for days, and the others wait as rows. Those that have failed for good in the time count, too: deliveries with few attempts would
 * all be spent on an endpoint that fails. These are few while its endpoint cannot be reached, and more while it rejects
 * all that it is sent. No delivery is read for a webhook that was probed a moment ago.
 *
 * The recursive part is a loose index scan: it finds the distinct webhooks with one index probe
 * each, however many deliveries are pending.
 */
const FREE_SLOTS = `pending (id) AS (
    (SELECT webhook_id FROM deliveries WHERE status = 'pending' AND job_id IS NULL
       AND current_setting('${HAS_LOCK}')::boolean
     ORDER BY webhook_id LIMIT 1)
    UNION ALL
    SELECT (SELECT webhook_id FROM deliveries
            WHERE status = 'pending' AND job_id IS NULL AND webhook_id > pending.id
            ORDER BY webhook_id LIMIT 1)
    FROM pending WHERE pending.id IS NOT NULL
  ), due AS MATERIALIZED (
    SELECT w.id, w.tenant_id, ${WEBHOOK_STATE} AS state, ${IN_FLIGHT} AS in_flight,
           ${UNREACHABLE_SINCE} IS NOT NULL AS is_unreachable, ${FAILING_SINCE} AS failing_since
    FROM pending JOIN webhooks AS w USING (id)
    WHERE w.enabled AND (w.probed_at IS NULL OR w.probed_at < clock_timestamp() - ${PROBE_INTERVAL})
  ), limited AS (
    SELECT *, CASE state WHEN 'working' THEN ?::bigint ELSE ? END - in_flight AS slots,
           CASE WHEN is_unreachable THEN ?::bigint WHEN state = 'failing' THEN ? ELSE ? END AS max_open
    FROM due
  ), counted AS MATERIALIZED (
    SELECT *, GREATEST(max_open - (
      SELECT count(*) FROM (
        SELECT FROM deliveries WHERE webhook_id = l.id AND status = 'pending' AND job_id IS NOT NULL
        LIMIT l.max_open
      ) AS open) - (
      SELECT count(*) FROM (
        SELECT updated_at FROM deliveries
        WHERE l.failing_since IS NOT NULL AND webhook_id = l.id AND status = 'failed'
        ORDER BY id DESC LIMIT l.max_open
      ) AS spent WHERE updated_at >= l.failing_since), 0) AS unopened
    FROM limited AS l WHERE slots > 0
  ), free AS (
    SELECT id, tenant_id, state, unopened = 0 AS is_probe, LEAST(slots, GREATEST(unopened, 1)) AS free
    FROM counted
  )`;

/**
 * Takes the lock of the queue until the transaction ends, unless another process has it. Then reads, in
 * the same round trip, the enabled webhooks that have pending deliveries and free slots, of each tenant in
 * turn, and the slots in use.
 */
async function lockAndReadQueue(
  trx: Knex,
  { maxInFlight, maxInFlightFailing, maxOpen, maxOpenFailing, maxOpenUnreachable }: SlotLimits,
  limit: number,
): Promise<QueueState> {
  await prepared(
    trx,
    `SELECT set_config('${HAS_LOCK}', pg_try_advisory_xact_lock(?)::text, true)`,
    [LOCKS.deliveryQueue],
    { waits: true },
  );
  const { rows }: { rows: QueueState[] } = await prepared(
    trx,
    `WITH RECURSIVE ${FREE_SLOTS}, chosen AS (
       SELECT * FROM free
       ORDER BY row_number() OVER (PARTITION BY tenant_id ORDER BY random()), random() LIMIT ?
     ), candidate AS (
       SELECT c.id, c.tenant_id AS "tenantId", c.state, c.free, c.is_probe AS "isProbe", (
         SELECT count(*) FROM (
           SELECT FROM deliveries
           WHERE status = 'pending' AND job_id IS NULL AND webhook_id = c.id LIMIT c.free
         ) AS counted
       ) AS waiting
       FROM chosen AS c
     )
     SELECT current_setting('${HAS_LOCK}')::boolean AS "isLocked",
       EXISTS (SELECT FROM due) AS "areDue",
       (SELECT count(*) FROM (
         SELECT FROM deliveries WHERE status = 'pending' AND job_id IS NULL LIMIT ?) AS counted) AS pending,
       (SELECT COALESCE(json_agg(c), '[]') FROM candidate AS c) AS webhooks,
       (SELECT COALESCE(json_agg(h), '[]') FROM (${HELD_SLOTS}) AS h) AS held`,
    [
      ...[maxInFlight, maxInFlightFailing, maxOpenUnreachable, maxOpenFailing, maxOpen],
      ...[limit, limit + 1],
    ],
  );
  return assertDefined(rows[0], 'state of the queue');
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

/**
 * Ends the cancellation of a webhook that has no delivery left to cancel. It is locked by a statement
 * before: one that waits for the lock itself would not see deliveries of the transaction that it waited for.
 */
export const finishCancellation = (db: Knex, webhookId: string): Promise<void> =>
  db.transaction(async (trx) => {
    const found = await trx('webhooks')
      .where({ id: webhookId })
      .whereNotNull('cancel_before')
      .forNoKeyUpdate()
      .skipLocked()
      .first('id');
    if (found === undefined || (await findCancellableDeliveries(trx, webhookId, 1)).length > 0)
      return;
    await trx('webhooks')
      .where({ id: webhookId })
      .update({ cancel_before: null, cancel_reason: null });
  });

/** A webhook whose pending deliveries are to be cancelled, with the reason to record. */
export type CancellingWebhook = { id: string; tenantId: string; reason: string };

/** Up to 20 webhooks whose pending deliveries are to be cancelled, of each tenant in turn. */
export async function findCancellingWebhooks(db: Knex): Promise<CancellingWebhook[]> {
  const { rows } = await db.raw<{ rows: CancellingWebhook[] }>(
    `SELECT id, tenant_id AS "tenantId", cancel_reason AS reason FROM webhooks
     WHERE cancel_before IS NOT NULL
     ORDER BY row_number() OVER (PARTITION BY tenant_id ORDER BY random()), random() LIMIT 20`,
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
 *
 * Both statements find the rows by their ids alone. With the other conditions in them, PostgreSQL
 * may read all pending deliveries, as long as it does not know how many there are.
 */
export async function markDeliveriesCancelled(
  trx: Knex,
  deliveries: readonly { id: string; jobId: string | null }[],
  reason: string,
  now: Date,
): Promise<number> {
  const jobs = new Map(deliveries.map(({ id, jobId }) => [id, jobId]));
  const { rows } = await trx.raw<{ rows: { id: string; jobId: string | null; isOpen: boolean }[] }>(
    `SELECT id, job_id AS "jobId", status = 'pending' AND reason IS NULL AS "isOpen"
     FROM deliveries WHERE id = ANY (?::text[]) ORDER BY id FOR UPDATE`,
    [[...jobs.keys()]],
  );
  const open = rows.filter(({ id, jobId, isOpen }) => isOpen && jobs.get(id) === jobId);
  const { rowCount } = await trx.raw<{ rowCount: number }>(
    `UPDATE deliveries SET reason = ?, updated_at = ?,
       status = CASE WHEN job_id IS NULL THEN 'cancelled' ELSE status END
     WHERE id = ANY (?::text[])`,
    [reason, now, open.map(({ id }) => id)],
  );
  return rowCount;
}
