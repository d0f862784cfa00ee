import { minIdAt } from '../../platform/ids.ts';
import type { Knex } from '../core/knex.ts';
import { hasHolds } from './holds.ts';
import { ALL, raiseMarks } from './state.ts';

/** Months for which partitions exist in advance. */
const MONTHS_AHEAD = 2;

/** How long dropping a month may wait for readers; writers of log lines wait behind it. */
const LOCK_TIMEOUT_MS = 500;

/** Creates the partitions of `job_logs` for this month and the next ones. */
export async function createMonths(db: Knex, now: Date): Promise<void> {
  await db.transaction(async (trx) => {
    await trx.raw(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`);
    await trx.raw(
      'SELECT create_job_log_month(month_after(?, m)) FROM generate_series(1, ?) AS m',
      [now, MONTHS_AHEAD],
    );
  });
}

/** A partition of `job_logs` with lines of jobs up to the id `until`, exclusive. */
export type LogMonth = { name: string; until: string };

/** The months that have ended before `now`, oldest first. */
export async function findPastMonths(db: Knex, now: Date): Promise<LogMonth[]> {
  const { rows } = await db.raw<{ rows: LogMonth[] }>(
    `SELECT name, until FROM (
       SELECT c.relname::text AS name,
         substring(pg_get_expr(c.relpartbound, c.oid) FROM $re$ TO \\('(job_[0-9a-z]+)'\\)$re$) AS until
       FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
       WHERE i.inhparent = 'job_logs'::regclass) AS months
     WHERE until <= ? ORDER BY until`,
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

/**
 * Drops a month, unless a legal hold is in force: then it returns false. The mark for everybody says
 * that its lines are purged. Error: SQLSTATE 55P03 when readers hold it.
 */
export async function dropMonth(trx: Knex, { name, until }: LogMonth): Promise<boolean> {
  await trx.raw(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`);
  // Nobody creates a hold until the commit.
  await trx.raw('LOCK TABLE legal_holds IN SHARE MODE');
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
