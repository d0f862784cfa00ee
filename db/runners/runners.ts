import {
  MAX_COUNTED_JOBS,
  RUNNER_LIFETIME_SECONDS,
  type PoolLoad,
  type RunnerData,
} from '../../domain/runners/records.ts';
import { SHOWN_NOW } from '../core/databaseTime.ts';
import type { Knex } from '../core/knex.ts';
import { Job } from '../models/Job.ts';
import { prepared } from '../core/prepared.ts';
import type { RecordChange } from '../core/unitOfWork.ts';
import { WAITS_SINCE } from './attempts.ts';

/** SQL: true for runners, of the alias `r`, that have reported lately and can take jobs. */
export const IS_READY = `(r.seen_at > now() - interval '${RUNNER_LIFETIME_SECONDS} seconds' AND r.reaches_temporal)`;

type Announcement = Pick<
  RunnerData,
  'id' | 'pool' | 'tokenId' | 'name' | 'version' | 'slots' | 'types' | 'address' | 'reachesTemporal'
> & { processId: string };

/**
 * Notes what a runner process offers to a pool. Returns its id: the one of before, if it has announced
 * itself with the same token. Undefined if a runner of another token has this process id.
 */
export async function noteRunner(db: Knex, runner: Announcement): Promise<string | undefined> {
  const { rows }: { rows: { id: string }[] } = await prepared(
    db,
    `INSERT INTO runners AS r
       (id, process_id, pool, token_id, name, version, slots, types, address, reaches_temporal,
        started_at, seen_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ${SHOWN_NOW}, ${SHOWN_NOW})
     ON CONFLICT (process_id, pool) DO UPDATE SET name = excluded.name, version = excluded.version,
       slots = excluded.slots, types = excluded.types, address = excluded.address,
       reaches_temporal = excluded.reaches_temporal, seen_at = ${SHOWN_NOW}
       WHERE r.token_id = excluded.token_id
     RETURNING id`,
    [
      ...[runner.id, runner.processId, runner.pool, runner.tokenId, runner.name, runner.version],
      ...[runner.slots, JSON.stringify(runner.types), runner.address, runner.reachesTemporal],
    ],
  );
  return rows[0]?.id;
}

type OwnRunner = { processId: string; pool: string; tokenId: string };

/** Notes that a runner is alive. Returns what it has announced; undefined for an unknown one. */
export async function noteAlive(
  db: Knex,
  { processId, pool, tokenId, reachesTemporal }: OwnRunner & { reachesTemporal: boolean },
): Promise<{ id: string; types: Record<string, string> } | undefined> {
  const { rows }: { rows: { id: string; types: Record<string, string> }[] } = await prepared(
    db,
    `UPDATE runners SET seen_at = ${SHOWN_NOW}, reaches_temporal = ?
     WHERE process_id = ? AND pool = ? AND token_id = ? RETURNING id, types`,
    [reachesTemporal, processId, pool, tokenId],
  );
  return rows[0];
}

/** Removes a runner that stops. */
export const removeOwnRunner = async (
  db: Knex,
  { processId, pool, tokenId }: OwnRunner,
): Promise<void> =>
  void (await db('runners').where({ process_id: processId, pool, token_id: tokenId }).delete());

/** The runner of a process in one of the pools, if it has announced itself with this token. */
export async function findOwnRunner(
  db: Knex,
  { processId, pool, tokenId }: OwnRunner,
): Promise<{ id: string; types: Record<string, string> } | undefined> {
  const { rows }: { rows: { id: string; types: Record<string, string> }[] } = await prepared(
    db,
    'SELECT id, types FROM runners WHERE process_id = ? AND pool = ? AND token_id = ?',
    [processId, pool, tokenId],
  );
  return rows[0];
}

/** Removes runners that ended without a word, an hour ago or longer. */
export const purgeRunners = async (db: Knex): Promise<void> =>
  void (await db.raw(`DELETE FROM runners WHERE seen_at < now() - interval '1 hour'`));

/** How many jobs the runners of a pool can run at a time, and the share of one tenant, if it has its own. */
export async function poolCapacity(
  db: Knex,
  pool: string,
): Promise<{ slots: number; sharePercent: number | null }> {
  const { rows }: { rows: { slots: number; sharePercent: number | null }[] } = await prepared(
    db,
    `SELECT tenant_share_percent AS "sharePercent", (
       SELECT COALESCE(sum(r.slots), 0)::integer FROM runners AS r WHERE r.pool = p.name AND ${IS_READY}
     ) AS slots
     FROM pools AS p WHERE p.name = ?`,
    [pool],
  );
  return rows[0] ?? { slots: 0, sharePercent: null };
}

/** The number of runners that are alive, by pool. */
export async function countRunners(
  db: Knex,
  pools: readonly string[],
): Promise<Map<string, number>> {
  if (pools.length === 0) return new Map();
  const { rows }: { rows: { pool: string; count: number }[] } = await prepared(
    db,
    `SELECT r.pool, count(*)::integer AS count FROM runners AS r
     WHERE r.pool = ANY (?::text[]) AND ${IS_READY} GROUP BY r.pool`,
    [[...pools]],
  );
  return new Map(rows.map(({ pool, count }) => [pool, count]));
}

/** True if a living runner of a pool has announced a type. */
export async function isAnnounced(db: Knex, pool: string, type: string): Promise<boolean> {
  const { rows }: { rows: unknown[] } = await prepared(
    db,
    `SELECT 1 FROM runners AS r
     WHERE r.pool = ? AND ${IS_READY} AND r.types ->> ?::text IS NOT NULL LIMIT 1`,
    [pool, type],
  );
  return rows.length > 0;
}

/** How long a version that a runner had counts as one that may come back, such as after a restart. */
const VERSION_LIFETIME_SECONDS = 60;

/** True if a runner of a pool has, or had just now, a version of a type; whether it can take jobs or not. */
export async function hasVersion(
  db: Knex,
  { pool, type, digest }: { pool: string; type: string; digest: string },
): Promise<boolean> {
  const { rows }: { rows: unknown[] } = await prepared(
    db,
    `SELECT 1 FROM runners AS r WHERE r.pool = ? AND r.types ->> ?::text = ?
       AND r.seen_at > now() - interval '${VERSION_LIFETIME_SECONDS} seconds' LIMIT 1`,
    [pool, type, digest],
  );
  return rows.length > 0;
}

/** The accepted types of a pool that its living runners have, each with the versions that may run. */
export async function listOffered(
  db: Knex,
  pool: string,
): Promise<{ name: string; digest: string }[]> {
  const { rows }: { rows: { name: string; digest: string }[] } = await prepared(
    db,
    `SELECT DISTINCT t.name, v.digest
     FROM runners AS r CROSS JOIN json_each_text(r.types) AS a
     JOIN job_types AS t ON t.name = a.key AND t.pool = r.pool AND t.state = 'accepted'
     JOIN job_type_versions AS v ON v.name = t.name AND v.digest = a.value AND v.shape = t.shape
     WHERE r.pool = ? AND ${IS_READY}`,
    [pool],
  );
  return rows;
}

/** How busy pools are, by name. */
export async function readPoolLoads(
  db: Knex,
  pools: readonly string[],
): Promise<Map<string, PoolLoad>> {
  if (pools.length === 0) return new Map();
  const unfinished = `j.slot IS NOT NULL AND j.status IN ('queued', 'running')`;
  const { rows }: { rows: ({ pool: string } & PoolLoad)[] } = await prepared(
    db,
    `SELECT p.name AS pool, (
       SELECT COALESCE(sum(r.slots), 0)::integer FROM runners AS r WHERE r.pool = p.name AND ${IS_READY}
     ) AS slots, (
       SELECT count(*)::integer FROM jobs AS j
       WHERE j.slot = 'held' AND j.pool = p.name AND ${unfinished} AND j.status = 'running'
     ) AS "runningJobs", (
       SELECT count(*)::integer FROM (
         SELECT FROM jobs AS j
         WHERE j.slot IN ('waiting', 'held') AND j.pool = p.name AND ${unfinished} AND j.status = 'queued'
         LIMIT ${MAX_COUNTED_JOBS}
       ) AS counted
     ) AS "queuedJobs"
     FROM unnest(?::text[]) AS p (name)`,
    [[...pools]],
  );
  return new Map(rows.map(({ pool, ...load }) => [pool, load]));
}

/** How many jobs the runners of pools run now, by the id of the runner. */
export async function countRunningJobs(
  db: Knex,
  pools: readonly string[],
): Promise<Map<string, number>> {
  if (pools.length === 0) return new Map();
  const { rows }: { rows: { runner: string; count: number }[] } = await prepared(
    db,
    `SELECT r.id AS runner, count(*)::integer AS count
     FROM jobs AS j JOIN remote_attempts AS a ON a.job_id = j.id AND a.attempt = j.attempts
     JOIN runners AS r ON r.process_id = a.runner_id AND r.pool = j.pool
     WHERE j.slot = 'held' AND j.pool = ANY (?::text[]) AND j.status = 'running' AND a.answer IS NULL
     GROUP BY 1`,
    [[...pools]],
  );
  return new Map(rows.map(({ runner, count }) => [runner, count]));
}

/** The number of living runners that have announced a type, by type and digest. */
export async function countByDigest(
  db: Knex,
): Promise<{ name: string; digest: string; runners: number }[]> {
  const { rows }: { rows: { name: string; digest: string; runners: number }[] } = await prepared(
    db,
    `SELECT t.key AS name, t.value AS digest, count(*)::integer AS runners
     FROM runners AS r, json_each_text(r.types) AS t WHERE ${IS_READY} GROUP BY 1, 2`,
    [],
  );
  return rows;
}

/** SQL: what `listOffered` lists, of all pools. */
const OFFERED = `
  SELECT r.pool, t.name, v.digest
  FROM runners AS r CROSS JOIN json_each_text(r.types) AS a
  JOIN job_types AS t ON t.name = a.key AND t.pool = r.pool AND t.state = 'accepted'
  JOIN job_type_versions AS v ON v.name = t.name AND v.digest = a.value AND v.shape = t.shape
  WHERE ${IS_READY}`;

/** SQL: the running job `j` waits for the attempt after `a`, and that was not reported. */
const UNREPORTED = `${WAITS_SINCE} > COALESCE(j.waiting_reported_at, '-infinity')`;

/**
 * Jobs that have waited longer than `seconds`, queued or between two attempts, were not reported since, and that no living runner may start: there is none,
 * none has the type, its version is not accepted, it is disabled, or the job was approved with another version.
 */
export const findWaiting = async (db: Knex, seconds: number, limit: number): Promise<Job[]> =>
  Job.query(db)
    .whereRaw(
      `id IN (
         SELECT id FROM jobs WHERE status = 'queued' AND pool <> '' AND waiting_reported_at IS NULL
           AND created_at < now() - ? * interval '1 second'
         UNION ALL
         SELECT j.id FROM jobs AS j JOIN remote_attempts AS a ON a.job_id = j.id
         WHERE j.status = 'running' AND ${WAITS_SINCE} < now() - ? * interval '1 second' AND ${UNREPORTED})`,
      [seconds, seconds],
    )
    .whereRaw(
      `NOT EXISTS (SELECT FROM (${OFFERED}) AS o WHERE o.pool = jobs.pool AND o.name = jobs.type
         AND (jobs.source_kind <> 'approval' OR jobs.type_digest IS NULL OR jobs.type_digest = o.digest))`,
    )
    .orderByRaw('random()')
    .limit(limit);

/** Marks a job that still waits as reported. Without effect if it has been, by another process. */
export const reportWaitingChange = (id: string, at: Date): RecordChange => ({
  topics: [],
  sql: (name) =>
    `${name} AS (
       UPDATE jobs AS j SET waiting_reported_at = ?
       WHERE id = ? AND (
         (status = 'queued' AND waiting_reported_at IS NULL)
         OR EXISTS (SELECT FROM remote_attempts AS a WHERE a.job_id = j.id AND ${UNREPORTED})
       ) RETURNING id
     )`,
  bindings: [at, id],
});
