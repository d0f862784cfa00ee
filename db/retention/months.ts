import { minIdAt } from '../../platform/ids.ts';
import type { Knex } from '../core/knex.ts';
import { hasHolds } from './holds.ts';
import { ALL, raiseMarks } from './state.ts';

/** Months after the present one for which partitions exist in advance. */
const MONTHS_AHEAD = 2;

/** How long dropping a month may wait for readers; writers of log lines wait behind it. */
const LOCK_TIMEOUT_MS = 500;

/**
 * The most lines that move to the partition of a month: their writers wait for it. If a month has
 * more, because no purge ran for long, only its later lines get a partition; the lines that exist stay in
 * `job_logs_other`, where the purge deletes them.
 */
const MAX_MOVED_LINES = 20_000;

/** The rest of a month begins so much later: jobs created until it is there are not in it. */
const REST_DELAY_MS = 600_000;

/** PostgreSQL reads all of `job_logs_other` before it adds a partition; writers wait for it. */
const ATTACH_TIMEOUT_MS = 10_000;

/** The partitions of `job_logs` with the first job id of each and the first after it; null: none. */
const BOUNDS = `SELECT c.relname::text AS name,
    substring(pg_get_expr(c.relpartbound, c.oid) FROM $re$FROM \\('(job_[0-9a-z]+)'\\)$re$) COLLATE "C" AS since,
    substring(pg_get_expr(c.relpartbound, c.oid) FROM $re$TO \\('(job_[0-9a-z]+)'\\)$re$) COLLATE "C" AS until
  FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
  WHERE i.inhparent = 'job_logs'::regclass`;

/** A month without a partition: how many months it is after the present one. */
export type MissingMonth = { month: number; movable: boolean };

/**
 * The months, this one and the next ones, that have no partition to their end. `movable`: few enough
 * of its lines are in `job_logs_other`.
 */
export async function findMissingMonths(db: Knex, now: Date): Promise<MissingMonth[]> {
  const { rows } = await db.raw<{ rows: MissingMonth[] }>(
    `SELECT m AS month, (SELECT count(*) FROM (SELECT FROM job_logs_other
         WHERE job_id >= first_job_id(month_after(:now::timestamptz, m))
           AND job_id < first_job_id(month_after(:now::timestamptz, m + 1))
         LIMIT :most + 1) AS l) <= :most AS movable
     FROM generate_series(0, :ahead::integer) AS m
     WHERE NOT EXISTS (SELECT FROM (${BOUNDS}) AS p
       WHERE coalesce(p.since, '') <= greatest(
           first_job_id(month_after(:now::timestamptz, m)), first_job_id(:restFrom::timestamptz))
         AND p.until >= first_job_id(month_after(:now::timestamptz, m + 1)))
     ORDER BY m`,
    { now, restFrom: restOf(now), most: MAX_MOVED_LINES, ahead: MONTHS_AHEAD },
  );
  return rows;
}

const restOf = (now: Date): Date => new Date(now.getTime() + REST_DELAY_MS);

/** Creates the partition of a month, or of the rest of it. Writers wait for at most some seconds. */
export async function createMonth(
  db: Knex,
  now: Date,
  { month, movable }: MissingMonth,
): Promise<void> {
  await db.transaction(async (trx) => {
    await trx.raw(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`);
    await trx.raw(`SET LOCAL statement_timeout = ${ATTACH_TIMEOUT_MS}`);
    // No line of the month is written there between the move and the end.
    await trx.raw('LOCK TABLE job_logs_other IN ACCESS EXCLUSIVE MODE');
    if (movable)
      await trx.raw('SELECT create_job_log_month(month_after(?::timestamptz, ?))', [now, month]);
    else if (month === 0 && restOf(now).getUTCMonth() === now.getUTCMonth())
      await trx.raw('SELECT create_job_log_rest(?)', [restOf(now)]);
  });
}

/** About how many lines are in `job_logs_other`. */
export async function countLinesOutside(db: Knex): Promise<number> {
  const { rows } = await db.raw<{ rows: { lines: number }[] }>(
    `SELECT pg_stat_get_live_tuples('job_logs_other'::regclass) AS lines`,
  );
  return rows[0]?.lines ?? 0;
}

/** A partition of `job_logs` with lines of jobs up to the id `until`, exclusive. */
export type LogMonth = { name: string; until: string };

/** The months that have ended before `now`, oldest first. */
export async function findPastMonths(db: Knex, now: Date): Promise<LogMonth[]> {
  const { rows } = await db.raw<{ rows: LogMonth[] }>(
    `SELECT name, until FROM (${BOUNDS}) AS months WHERE until <= ? ORDER BY until`,
    [minIdAt('job', now)],
  );
  return rows;
}

/**
 * Whether a month may be dropped with its lines: all of its jobs have ended and were created before
 * the earliest cutoff of all tenants and job types (`earliest`; null: some lines are kept for ever).
 * An empty month may be dropped in any case.
 */
export async function mayDropMonth(
  db: Knex,
  { name, until }: LogMonth,
  earliest: Date | null,
): Promise<'lines' | 'empty' | false> {
  const { rows } = await db.raw<{ rows: { filled: boolean; unfinished: boolean }[] }>(
    `SELECT EXISTS (SELECT FROM ??) AS filled, EXISTS (
       SELECT FROM jobs WHERE status IN ('queued', 'running') AND id < ?) AS unfinished`,
    [name, until],
  );
  if (rows[0]?.unfinished !== false) return false;
  if (!rows[0].filled) return 'empty';
  if (!earliest || until > minIdAt('job', earliest)) return false;
  return 'lines';
}

/** Nobody creates a legal hold or changes a period until the transaction ends. */
export async function lockWhatKeepsMonths(trx: Knex): Promise<void> {
  await trx.raw(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`);
  await trx.raw('LOCK TABLE legal_holds, retention_settings IN SHARE MODE');
}

/**
 * Drops a month after `lockWhatKeepsMonths`, unless a legal hold is in force: then it returns false.
 * The mark for everybody says that its lines are purged. Error: SQLSTATE 55P03 when readers hold it.
 */
export async function dropMonth(trx: Knex, { name, until }: LogMonth): Promise<boolean> {
  if (await hasHolds(trx)) return false;
  await trx.raw('DROP TABLE ??', [name]);
  await raiseMarks(trx, 'jobLogs', [
    { tenantId: ALL, jobType: ALL, untilId: until, untilSequence: null },
  ]);
  return true;
}

/** Drops a month that has no lines; false when it got some. */
export async function dropEmptyMonth(db: Knex, { name }: LogMonth): Promise<boolean> {
  return db.transaction(async (trx) => {
    await trx.raw(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`);
    // In the order in which readers lock them: DROP needs the first lock, too.
    await trx.raw('LOCK TABLE ONLY job_logs IN ACCESS EXCLUSIVE MODE');
    await trx.raw('LOCK TABLE ?? IN ACCESS EXCLUSIVE MODE', [name]);
    const { rows } = await trx.raw<{ rows: { filled: boolean }[] }>(
      'SELECT EXISTS (SELECT FROM ??) AS filled',
      [name],
    );
    if (rows[0]?.filled !== false) return false;
    await trx.raw('DROP TABLE ??', [name]);
    return true;
  });
}
