import { mayTakeMore, type Demand } from '../../domain/dispatch/shares.ts';
import { chosenRows } from '../core/chosenRows.ts';
import { lockUntilCommit } from '../core/advisoryLocks.ts';
import { SHOWN_CLOCK } from '../core/databaseTime.ts';
import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';
import { interruptAttempts } from './deliveryAttempts.ts';

/**
 * How many deliveries of one webhook may be in flight, normally and while it is not working, and
 * how many of one tenant for all webhooks that are not: in each of the two states, and how many of
 * these the queue leaves to retries. `maxOpen`, `maxOpenFailing`, `maxOpenUnreachable`: how many deliveries of a webhook have
 * jobs, which they keep until their last attempt: normally, while every attempt fails, and while its endpoint cannot be
 * reached; beyond that the queue only probes it. `maxCounted`: most deliveries that are counted to see how long one has
 * to wait, which has a limit too.
 */
export type SlotLimits = {
  maxInFlight: number;
  maxInFlightFailing: number;
  maxFailingOfTenant: number;
  keptForRetries: number;
  maxOpen: number;
  maxOpenFailing: number;
  maxOpenUnreachable: number;
  maxCounted: number;
};

/** The slots of all deliveries, and how much of them one tenant gets. */
export type SlotShares = { capacity: number; sharePercent: number };

/**
 * `working`: its endpoint has accepted a delivery, and not failed since. `new`: no attempt has ended.
 * A webhook that is not working may hang, so few of its deliveries try.
 */
export type WebhookState = 'working' | 'failing' | 'new';

/**
 * What a delivery found no free slot in: the slots of its webhook, or those that its tenant has as
 * its share, and the deliveries with jobs that share them. `failing`: the endpoint may hang.
 */
export type SlotContention = { waiting: number; slots: number; failing: boolean };

/** SQL: the state of the webhook `w`. */
export const WEBHOOK_STATE = `CASE WHEN w.failing_since IS NOT NULL THEN 'failing'
  WHEN EXISTS (SELECT FROM deliveries WHERE webhook_id = w.id AND status = 'succeeded')
  THEN 'working' ELSE 'new' END`;

/** SQL: the slots of the webhook `w`. Bindings: the two limits. */
const SLOTS = `CASE WHEN ${WEBHOOK_STATE} = 'working' THEN ?::bigint ELSE ? END`;

/** SQL: the number of deliveries in flight of the webhook `w`. */
export const IN_FLIGHT = `(
  SELECT count(*) FROM deliveries
  WHERE webhook_id = w.id AND status = 'pending' AND in_flight)`;

/** The slots that a tenant holds for its webhooks in one state. */
export type HeldSlots = { tenantId: string; state: WebhookState; held: number };

/** SQL: the slots that each tenant holds, as `HeldSlots`. */
export const HELD_SLOTS = `SELECT f.tenant_id AS "tenantId", ${WEBHOOK_STATE} AS state, sum(f.held)::bigint AS held
  FROM (
    SELECT tenant_id, webhook_id, count(*) AS held FROM deliveries
    WHERE status = 'pending' AND in_flight GROUP BY tenant_id, webhook_id
  ) AS f JOIN webhooks AS w ON w.id = f.webhook_id GROUP BY 1, 2`;

/** The slots that each tenant holds: all, and those for webhooks in one state. */
function createHeld(rows: readonly HeldSlots[]) {
  const byTenant = new Map<string, number>();
  const byState = new Map<string, number>();
  const key = (tenantId: string, state: WebhookState) => `${state} ${tenantId}`;
  const add = (tenantId: string, state: WebhookState, count: number): void => {
    byTenant.set(tenantId, (byTenant.get(tenantId) ?? 0) + count);
    const inState = key(tenantId, state);
    byState.set(inState, (byState.get(inState) ?? 0) + count);
  };
  for (const { tenantId, state, held } of rows) add(tenantId, state, held);
  return {
    byTenant,
    add,
    inState: (tenantId: string, state: WebhookState) => byState.get(key(tenantId, state)) ?? 0,
  };
}

/** How many deliveries of a tenant the queue may start now for webhooks that are not working. */
export type TrialsLeft = { new: number; failing: number };

/** A webhook with free slots, and how many of its pending deliveries could use them. */
export type CandidateWebhook = {
  id: string;
  tenantId: string;
  state: WebhookState;
  free: number;
  /** True when it has as many deliveries with jobs as it may have, and one more may start now. */
  isProbe: boolean;
  waiting: number;
};

/** The slots that each tenant holds, and how many pending deliveries of these webhooks could use one more. */
export function slotDemands(
  webhooks: readonly CandidateWebhook[],
  heldSlots: readonly HeldSlots[],
  { maxFailingOfTenant, keptForRetries }: SlotLimits,
): { demands: Demand[]; trialsLeft: (tenantId: string) => TrialsLeft } {
  const held = createHeld(heldSlots);
  const trialsLeft = (tenantId: string): TrialsLeft => ({
    new: Math.max(maxFailingOfTenant - held.inState(tenantId, 'new'), 0),
    failing: Math.max(maxFailingOfTenant - keptForRetries - held.inState(tenantId, 'failing'), 0),
  });
  const waiting = new Map<string, number>();
  for (const some of Map.groupBy(webhooks, (each) => `${each.state} ${each.tenantId}`).values()) {
    const [{ tenantId, state }] = some as [CandidateWebhook];
    const count = some.reduce((sum, each) => sum + each.waiting, 0);
    const most = state === 'working' ? count : trialsLeft(tenantId)[state];
    waiting.set(tenantId, (waiting.get(tenantId) ?? 0) + Math.min(count, most));
  }
  const tenantIds = new Set([...waiting.keys(), ...held.byTenant.keys()]);
  const demands = [...tenantIds].map((tenantId) => ({
    tenantId,
    held: held.byTenant.get(tenantId) ?? 0,
    waiting: waiting.get(tenantId) ?? 0,
  }));
  return { demands, trialsLeft };
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
  state: WebhookState;
  used: number;
  slots: number;
};

/** The deliveries of these jobs that need a slot, with the state of their webhooks. */
async function readCandidates(
  trx: Knex,
  jobIds: readonly string[],
  { maxInFlight, maxInFlightFailing }: SlotLimits,
): Promise<Candidate[]> {
  const { rows } = await trx.raw<{ rows: Candidate[] }>(
    `SELECT d.job_id AS "jobId", w.id AS "webhookId", w.tenant_id AS "tenantId", w.slots, w.used,
            w.state
     FROM deliveries AS d JOIN (
       SELECT w.id, w.tenant_id, ${WEBHOOK_STATE} AS state, ${SLOTS} AS slots, ${IN_FLIGHT} AS used
       FROM webhooks AS w
       WHERE w.id IN (SELECT webhook_id FROM deliveries WHERE job_id = ANY (?::text[]))
     ) AS w ON w.id = d.webhook_id
     WHERE d.job_id = ANY (?::text[]) AND d.status = 'pending' AND NOT d.in_flight
     ORDER BY d.id`,
    [maxInFlight, maxInFlightFailing, [...jobIds], [...jobIds]],
  );
  return rows;
}

/** Counts what waits for the same slots: of a webhook, or of a tenant, all or in one state; each once. */
function createContention(trx: Knex, maxCounted: number) {
  const counted = new Map<string, number>();
  async function count(webhooks: string, bindings: readonly Knex.RawBinding[]): Promise<number> {
    const key = JSON.stringify([webhooks, bindings]);
    const known = counted.get(key);
    if (known !== undefined) return known;
    const { rows } = await trx.raw<{ rows: [{ waiting: number }] }>(
      `SELECT count(*) AS waiting FROM (
         SELECT FROM webhooks AS w CROSS JOIN LATERAL (
           SELECT FROM deliveries
           WHERE webhook_id = w.id AND status = 'pending' AND job_id IS NOT NULL LIMIT ?
         ) AS d WHERE ${webhooks} LIMIT ?
       ) AS counted`,
      [maxCounted, ...bindings, maxCounted],
    );
    counted.set(key, rows[0].waiting);
    return rows[0].waiting;
  }
  return {
    ofWebhook: async (webhookId: string, slots: number): Promise<SlotContention> => ({
      waiting: await count('w.id = ?', [webhookId]),
      slots,
      failing: false,
    }),

    /**
     * Deliveries of webhooks that are not working wait as if they shared the tenant's slots only: one
     * that works again is found soon, and together they ask as often as these slots become free.
     */
    ofTenant: async (
      tenantId: string,
      state: WebhookState | null,
      slots: number,
    ): Promise<SlotContention> => ({
      waiting: await count(
        `w.tenant_id = ? AND w.deleted_at IS NULL AND (?::text IS NULL OR ${WEBHOOK_STATE} = ?)`,
        [tenantId, state, state],
      ),
      slots: Math.max(slots, 1),
      failing: state !== null,
    }),
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
  const { rows }: { rows: HeldSlots[] } = await prepared(trx, HELD_SLOTS, []);
  const held = createHeld(rows);
  let free = capacity - [...held.byTenant.values()].reduce((sum, count) => sum + count, 0);
  const used = new Map<string, number>();
  const taken: string[] = [];
  const refused = new Map<string, SlotContention>();
  const contention = createContention(trx, limits.maxCounted);
  for (const candidate of await readCandidates(trx, jobIds, limits)) {
    const { jobId, webhookId, tenantId, state, slots } = candidate;
    const ofWebhook = used.get(webhookId) ?? candidate.used;
    const ofTenant = held.byTenant.get(tenantId) ?? 0;
    const isWorking = state === 'working';
    const trials = limits.maxFailingOfTenant;
    const isTrialFree = isWorking || held.inState(tenantId, state) < trials;
    if (ofWebhook >= slots || !isTrialFree) {
      refused.set(
        jobId,
        isWorking
          ? await contention.ofWebhook(webhookId, slots)
          : await contention.ofTenant(tenantId, state, trials),
      );
      continue;
    }
    if (!mayTakeMore(ofTenant, free, sharePercent)) {
      refused.set(jobId, await contention.ofTenant(tenantId, null, ofTenant));
      continue;
    }
    used.set(webhookId, ofWebhook + 1);
    held.add(tenantId, state, 1);
    free -= 1;
    taken.push(jobId);
  }
  if (taken.length > 0)
    await trx('deliveries')
      .whereIn('job_id', taken)
      .where({ status: 'pending' })
      .update({ in_flight: true, updated_at: trx.raw(SHOWN_CLOCK) });
  return refused;
}

/** An attempt has ended after this time, with all retries of the writes that record it. */
const MAX_ATTEMPT_MINUTES = 5;

/**
 * Frees slots of deliveries that no attempt has used for that time: their attempts have failed while the
 * database was away. The next attempts take slots again. Returns how many.
 */
export async function freeAbandonedSlots(db: Knex): Promise<number> {
  const longAgo = `clock_timestamp() - interval '${MAX_ATTEMPT_MINUTES} minutes'`;
  const { rows }: { rows: object[] } = await prepared(
    db,
    `WITH ${chosenRows(`
       SELECT d.id FROM deliveries AS d JOIN jobs AS j ON j.id = d.job_id
       WHERE d.status = 'pending' AND d.in_flight AND d.leased_until IS NULL
         AND d.updated_at < ${longAgo} AND j.updated_at < ${longAgo}
       ORDER BY d.id FOR UPDATE OF d SKIP LOCKED`)}, freed AS (
       UPDATE deliveries SET in_flight = false
       WHERE id IN (SELECT id FROM chosen)
       RETURNING id
     ), interrupted AS (
       ${interruptAttempts(SHOWN_CLOCK, 'IN (SELECT id FROM freed)')}
     )
     SELECT id FROM freed`,
    [],
  );
  return rows.length;
}
