import type { Demand } from '../../domain/dispatch/shares.ts';
import { chosenRows } from '../core/chosenRows.ts';
import { tryLockUntilCommit } from '../core/advisoryLocks.ts';
import type { Knex } from '../core/knex.ts';

/** Jobs whose slot counts: those that have not ended. The index `jobs_slots` has only these. */
const UNFINISHED = `status IN ('queued', 'running')`;

/** A waiting job with a workflow: one that has run, or that an approval started. */
const HAS_WORKFLOW = `(j.status = 'running' OR j.source_kind = 'approval')`;

/**
 * The pools for which jobs wait; the empty one is that of the workers. A loose index scan: one index
 * probe for each pool, however many jobs wait.
 */
export async function poolsWithWaitingJobs(db: Knex): Promise<string[]> {
  const first = `SELECT pool FROM jobs WHERE slot = 'waiting' AND ${UNFINISHED}`;
  const { rows } = await db.raw<{ rows: { pool: string }[] }>(
    `WITH RECURSIVE waiting (pool) AS (
       (${first} ORDER BY pool LIMIT 1)
       UNION ALL
       SELECT (${first} AND pool > waiting.pool ORDER BY pool LIMIT 1)
       FROM waiting WHERE waiting.pool IS NOT NULL
     )
     SELECT pool FROM waiting WHERE pool IS NOT NULL`,
  );
  return rows.map(({ pool }) => pool);
}

/**
 * The types whose jobs get slots. `digests`: the versions that runners have, for jobs that were approved
 * with one; null where types have no versions.
 */
export type StartableTypes = { names: readonly string[]; digests: readonly string[] | null };

/** SQL: the job of the alias `j` is of a type and version that can start. */
const CAN_START = `j.type = ANY (?::text[]) AND (?::text[] IS NULL OR j.source_kind <> 'approval'
  OR j.type_digest IS NULL OR j.type_digest = ANY (?::text[]))`;

function startableBindings({ names, digests }: StartableTypes): Knex.RawBinding[] {
  const known = digests && [...digests];
  return [[...names], known, known];
}

/** Takes the lock under which slots are granted; false when another process grants them now. */
export const lockSlots = (trx: Knex): Promise<boolean> => tryLockUntilCommit(trx, 'jobSlots');

/**
 * The slots of a pool that each tenant holds, and how many of its jobs wait for one and can start, counted
 * up to `limit`. The caller holds the lock. The recursive part is a loose index scan: it finds the tenants with
 * waiting jobs with one index probe each, however many jobs wait.
 */
export async function readSlotDemands(
  trx: Knex,
  pool: string,
  types: StartableTypes,
  limit: number,
): Promise<Demand[]> {
  const { rows } = await trx.raw<{ rows: Demand[] }>(
    `WITH RECURSIVE waiting (tenant_id) AS (
       (SELECT tenant_id FROM jobs WHERE slot = 'waiting' AND pool = ? AND ${UNFINISHED}
        ORDER BY tenant_id LIMIT 1)
       UNION ALL
       SELECT (SELECT tenant_id FROM jobs
               WHERE slot = 'waiting' AND pool = ? AND ${UNFINISHED} AND tenant_id > waiting.tenant_id
               ORDER BY tenant_id LIMIT 1)
       FROM waiting WHERE waiting.tenant_id IS NOT NULL
     ), held AS (
       SELECT tenant_id, count(*) AS held FROM jobs
       WHERE slot = 'held' AND pool = ? AND ${UNFINISHED} GROUP BY tenant_id
     )
     SELECT tenant_id AS "tenantId", COALESCE(held.held, 0) AS held,
            (SELECT count(*) FROM (
               SELECT FROM jobs AS j
               WHERE j.slot = 'waiting' AND j.pool = ? AND j.${UNFINISHED} AND j.tenant_id = t.tenant_id
                 AND ${CAN_START}
               LIMIT ?
             ) AS counted) AS waiting
     FROM (SELECT tenant_id FROM waiting WHERE tenant_id IS NOT NULL
           UNION SELECT tenant_id FROM held) AS t
     LEFT JOIN held USING (tenant_id)
     ORDER BY random()`,
    [pool, pool, pool, pool, ...startableBindings(types), limit],
  );
  return rows;
}

/** A job that got a slot. */
export type JobWithSlot = {
  id: string;
  type: string;
  tenantId: string;
  status: string;
  trace: string | null;
};

/**
 * Grants slots of a pool to the oldest waiting jobs of each tenant that can start: others would keep a slot
 * that they cannot use. The caller holds the lock.
 */
export async function grantSlots(
  trx: Knex,
  pool: string,
  grants: ReadonlyMap<string, number>,
  types: StartableTypes,
): Promise<JobWithSlot[]> {
  const { rows } = await trx.raw<{ rows: JobWithSlot[] }>(
    `WITH ${chosenRows(`
       SELECT j.id FROM unnest(?::text[], ?::integer[]) AS g (tenant_id, count)
       CROSS JOIN LATERAL (
         SELECT id FROM jobs AS j
         WHERE j.slot = 'waiting' AND j.pool = ? AND j.${UNFINISHED} AND j.tenant_id = g.tenant_id
           AND ${CAN_START}
         ORDER BY id LIMIT g.count FOR UPDATE SKIP LOCKED
       ) AS j`)}
     UPDATE jobs SET slot = 'held' WHERE id IN (SELECT id FROM chosen)
     RETURNING id, type, tenant_id AS "tenantId", status, trace`,
    [[...grants.keys()], [...grants.values()], pool, ...startableBindings(types)],
  );
  return rows.sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** Jobs that got a slot and cannot start after all wait for one again. */
export const returnSlots = async (trx: Knex, jobIds: readonly string[]): Promise<void> =>
  void (await trx('jobs')
    .whereIn('id', [...jobIds])
    .where({ slot: 'held', status: 'queued' })
    .update({ slot: 'waiting' }));

/**
 * The jobs of a tenant that wait for a slot: those that get one before this job, and the others
 * with a workflow, which ask for theirs.
 */
export type SlotQueue = { ahead: number; asking: number };

/**
 * Lets a job that has no slot wait for one. Returns what waits with it, each counted up to `limit`;
 * null when the job has a slot or has ended.
 */
export async function waitForSlot(
  db: Knex,
  jobId: string,
  limit: number,
): Promise<SlotQueue | null> {
  const waiting = `FROM jobs AS j WHERE j.slot = 'waiting' AND j.${UNFINISHED}
                   AND j.pool = job.pool AND j.tenant_id = job.tenant_id`;
  const { rows } = await db.raw<{ rows: SlotQueue[] }>(
    `WITH job AS (
       UPDATE jobs SET slot = 'waiting'
       WHERE id = ? AND slot IS DISTINCT FROM 'held' AND ${UNFINISHED}
       RETURNING id, pool, tenant_id
     )
     SELECT (SELECT count(*) FROM (SELECT ${waiting} AND j.id < job.id LIMIT ?) AS a) AS ahead,
            (SELECT count(*) FROM (
               SELECT ${waiting} AND j.id <> job.id AND ${HAS_WORKFLOW} LIMIT ?) AS b) AS asking
     FROM job`,
    [jobId, limit, limit],
  );
  return rows[0] ?? null;
}
