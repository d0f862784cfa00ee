import { mayTakeMore, type Demand } from '../../domain/dispatch/shares.ts';
import { lockUntilCommit } from '../core/advisoryLocks.ts';
import type { Knex } from '../core/knex.ts';

/** How many deliveries of one webhook may be in flight, normally and while every attempt fails. */
export type SlotLimits = { maxInFlight: number; maxInFlightFailing: number };

/** The slots of all deliveries, and how much of them one tenant gets. */
export type SlotShares = { capacity: number; sharePercent: number };

/**
 * What a delivery found no free slot in: the slots of its webhook, or those that its tenant has as
 * its share, and the deliveries with jobs that share them. `failing`: every attempt fails.
 */
export type SlotContention = { waiting: number; slots: number; failing: boolean };

/** SQL: the slots of the webhook `w`. Bindings: the two limits. */
const SLOTS = 'CASE WHEN w.failing_since IS NULL THEN ?::bigint ELSE ? END';

/** SQL: the number of deliveries in flight of the webhook `w`. */
const IN_FLIGHT = `(
  SELECT count(*) FROM deliveries
  WHERE webhook_id = w.id AND status = 'pending' AND in_flight)`;

/** SQL: the free slots of the webhook `w`. Bindings: the two limits. */
export const FREE_SLOTS = `${SLOTS} - ${IN_FLIGHT}`;

/** The slots that each tenant holds. */
async function heldByTenant(db: Knex): Promise<Map<string, number>> {
  const { rows } = await db.raw<{ rows: { tenantId: string; held: number }[] }>(
    `SELECT tenant_id AS "tenantId", count(*) AS held FROM deliveries
     WHERE status = 'pending' AND in_flight GROUP BY tenant_id`,
  );
  return new Map(rows.map(({ tenantId, held }) => [tenantId, held]));
}

/**
 * The slots that each tenant holds, and how many pending deliveries of these webhooks could use
 * one more.
 */
export async function readSlotDemands(
  trx: Knex,
  webhookIds: readonly string[],
  { maxInFlight, maxInFlightFailing }: SlotLimits,
): Promise<Demand[]> {
  const held = await heldByTenant(trx);
  const { rows } = await trx.raw<{ rows: { tenantId: string; waiting: number }[] }>(
    `SELECT w.tenant_id AS "tenantId", sum(p.waiting)::bigint AS waiting
     FROM webhooks AS w CROSS JOIN LATERAL (
       SELECT count(*) AS waiting FROM (
         SELECT FROM deliveries
         WHERE status = 'pending' AND job_id IS NULL AND webhook_id = w.id
         LIMIT greatest(${FREE_SLOTS}, 0)
       ) AS counted
     ) AS p
     WHERE w.id = ANY (?::text[]) AND w.enabled GROUP BY w.tenant_id ORDER BY random()`,
    [maxInFlight, maxInFlightFailing, [...webhookIds]],
  );
  const waiting = new Map(rows.map((row) => [row.tenantId, row.waiting]));
  return [...new Set([...waiting.keys(), ...held.keys()])].map((tenantId) => ({
    tenantId,
    held: held.get(tenantId) ?? 0,
    waiting: waiting.get(tenantId) ?? 0,
  }));
}

/** The jobs among these whose delivery has no slot. */
export const withoutSlot = (db: Knex, jobIds: readonly string[]): Promise<string[]> =>
  db('deliveries')
    .whereIn('job_id', [...jobIds])
    .where({ status: 'pending', in_flight: false })
    .pluck('job_id');

type Candidate = {
  jobId: string;
  webhookId: string;
  tenantId: string;
  used: number;
} & SlotContention;

/** The deliveries of these jobs that need a slot, with the state of their webhooks. */
async function readCandidates(
  trx: Knex,
  jobIds: readonly string[],
  { maxInFlight, maxInFlightFailing }: SlotLimits,
): Promise<Candidate[]> {
  const { rows } = await trx.raw<{ rows: Candidate[] }>(
    `SELECT d.job_id AS "jobId", w.id AS "webhookId", w.tenant_id AS "tenantId", w.slots, w.used,
            w.failing, (SELECT count(*) FROM deliveries
             WHERE webhook_id = w.id AND status = 'pending' AND job_id IS NOT NULL) AS waiting
     FROM deliveries AS d JOIN (
       SELECT w.id, w.tenant_id, w.failing_since IS NOT NULL AS failing, ${SLOTS} AS slots,
              ${IN_FLIGHT} AS used FROM webhooks AS w
       WHERE w.id IN (SELECT webhook_id FROM deliveries WHERE job_id = ANY (?::text[]))
     ) AS w ON w.id = d.webhook_id
     WHERE d.job_id = ANY (?::text[]) AND d.status = 'pending' AND NOT d.in_flight
     ORDER BY d.id`,
    [maxInFlight, maxInFlightFailing, [...jobIds], [...jobIds]],
  );
  return rows;
}

/** Most deliveries of a tenant that are counted: the wait has a limit too. */
const MAX_COUNTED = 10_000;

/** The state of the share of a tenant that holds `slots`. Its deliveries are counted once. */
function createTenantContention(trx: Knex) {
  const counted = new Map<string, number>();
  async function count(tenantId: string): Promise<number> {
    const { rows } = await trx.raw<{ rows: { waiting: number }[] }>(
      `SELECT count(*) AS waiting FROM (
         SELECT FROM webhooks AS w JOIN deliveries AS d ON d.webhook_id = w.id
         WHERE w.tenant_id = ? AND d.status = 'pending' AND d.job_id IS NOT NULL LIMIT ?
       ) AS counted`,
      [tenantId, MAX_COUNTED],
    );
    return rows[0]?.waiting ?? 0;
  }
  return async (tenantId: string, slots: number): Promise<SlotContention> => {
    const waiting = counted.get(tenantId) ?? (await count(tenantId));
    counted.set(tenantId, waiting);
    return { waiting, slots: Math.max(slots, 1), failing: false };
  };
}

/**
 * Takes slots for the deliveries of jobs, for those that have none. Returns the contention of each
 * job that got none. The lock of the queue makes the counts exact; only one batch of a process
 * waits for it, and nobody holds it for longer than a few statements.
 */
export async function takeSlots(
  trx: Knex,
  jobIds: readonly string[],
  { capacity, sharePercent, ...limits }: SlotLimits & SlotShares,
): Promise<Map<string, SlotContention>> {
  await lockUntilCommit(trx, 'deliveryQueue');
  const held = await heldByTenant(trx);
  let free = capacity - [...held.values()].reduce((sum, count) => sum + count, 0);
  const used = new Map<string, number>();
  const taken: string[] = [];
  const refused = new Map<string, SlotContention>();
  const contentionOf = createTenantContention(trx);
  for (const candidate of await readCandidates(trx, jobIds, limits)) {
    const { jobId, webhookId, tenantId, waiting, slots, failing } = candidate;
    const ofWebhook = used.get(webhookId) ?? candidate.used;
    const ofTenant = held.get(tenantId) ?? 0;
    if (ofWebhook >= slots) {
      refused.set(jobId, { waiting, slots, failing });
      continue;
    }
    if (!mayTakeMore(ofTenant, free, sharePercent)) {
      refused.set(jobId, await contentionOf(tenantId, ofTenant));
      continue;
    }
    used.set(webhookId, ofWebhook + 1);
    held.set(tenantId, ofTenant + 1);
    free -= 1;
    taken.push(jobId);
  }
  if (taken.length > 0)
    await trx('deliveries')
      .whereIn('job_id', taken)
      .where({ status: 'pending' })
      .update({ in_flight: true });
  return refused;
}
