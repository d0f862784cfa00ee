import type { Cutoffs, RetentionKind } from '../../domain/retention/retention.ts';
import { latestCutoff } from '../../domain/retention/retention.ts';
import { minIdAt } from '../../platform/ids.ts';
import type { Knex } from '../core/knex.ts';
import { sequenceBefore } from '../events/eventLog.ts';
import { dueSql, SOURCES, type PurgeSource } from './sources.ts';

/** Most rows that one commit deletes. */
export const MAX_ROWS = 5_000;

/** A record that is due. `sequence` is that of an event. */
export type DueRecord = {
  id: string;
  type: string;
  keptBy: string | null;
  rows: number;
  first: number;
  sequence: number | null;
};

/** The records that one query has examined: up to the key `last`; null when none are left. */
export type ExaminedWindow = { due: DueRecord[]; last: string | null; isLastWindow: boolean };

/** The key with which a purge begins, and the key before which records may be due; null: none. */
export const FIRST_KEY: Readonly<Record<'events' | 'other', string>> = { events: '0', other: '' };

export async function endKey(
  db: Knex,
  kind: RetentionKind,
  cutoffs: Cutoffs,
): Promise<string | null> {
  const latest = latestCutoff(cutoffs);
  if (!latest) return null;
  if (kind !== 'events') return minIdAt(SOURCES[kind].idKind, latest);
  return String((await sequenceBefore(db, latest)) + 1);
}

/** SQL that is true for records created before the cutoff of their type. */
export function beforeCutoff(
  { idKind, type, since }: PurgeSource,
  { other, jobTypes }: Cutoffs,
): { sql: string; bindings: string[] } {
  // No id is less than an empty text.
  const idOf = (at: Date | null) => (at ? minIdAt(idKind, at) : '');
  const types = Object.entries(jobTypes);
  if (since !== undefined && other)
    return {
      sql: `r.id < ? AND ${since} < ?::timestamptz`,
      bindings: [idOf(other), other.toISOString()],
    };
  if (types.length === 0) return { sql: 'r.id < ?', bindings: [idOf(other)] };
  return {
    sql: `r.id < CASE ${type} ${types.map(() => 'WHEN ? THEN ?').join(' ')} ELSE ? END COLLATE "C"`,
    bindings: [...types.flatMap(([name, at]) => [name, idOf(at)]), idOf(other)],
  };
}

type WindowQuery = { tenantId: string; cutoffs: Cutoffs; after: string; before: string };

/** Examines the next records of a tenant: those with keys between `after` and `before`. */
export async function examineWindow(
  db: Knex,
  kind: RetentionKind,
  { tenantId, cutoffs, after, before }: WindowQuery,
): Promise<ExaminedWindow> {
  const source = SOURCES[kind];
  const key = kind === 'events' ? 'sequence' : 'id';
  const cutoff = beforeCutoff(source, cutoffs);
  const { rows } = await db.raw<{
    rows: { last: string | null; examined: number; due: DueRecord[] | null }[];
  }>(
    `WITH examined AS MATERIALIZED (${source.window(source.batch)}), due AS (
       SELECT r.id, ${source.type} AS type, ${source.keptBy === null ? 'NULL' : `r.${source.keptBy}`} AS "keptBy",
         ${source.rows} AS rows, ${source.first} AS first, ${kind === 'events' ? 'r.sequence' : 'NULL'} AS sequence
       FROM examined AS r ${source.joins}
       WHERE ${cutoff.sql} AND ${dueSql(source)} AND ${source.partsPurged}
     )
     SELECT (SELECT max(${key})::text FROM examined) AS last, (SELECT count(*) FROM examined) AS examined,
       (SELECT json_agg(due ORDER BY id) FROM due) AS due`,
    [tenantId, after, before, ...cutoff.bindings],
  );
  const [row] = rows;
  if (!row) throw new Error('The query for due records returned no row');
  return { due: row.due ?? [], last: row.last, isLastWindow: row.examined < source.batch };
}

/** SQL of the id from which on the last records of `value` of a tenant are kept, by kind. */
export const FLOOR_SQL = {
  jobs: `SELECT id FROM jobs WHERE tenant_id = ? AND type = k.value ORDER BY id DESC OFFSET ? LIMIT 1`,
  scheduleRuns: `SELECT id FROM schedule_runs WHERE tenant_id = ? AND schedule_id = k.value
    ORDER BY id DESC OFFSET ? LIMIT 1`,
};

/**
 * From which id on records of these types, or schedules, are kept because they are the last `kept`.
 * Those that have fewer are not in the result: all are kept.
 */
export async function readFloors(
  db: Knex,
  kind: keyof typeof FLOOR_SQL,
  { tenantId, values, kept }: { tenantId: string; values: readonly string[]; kept: number },
): Promise<ReadonlyMap<string, string>> {
  const { rows } = await db.raw<{ rows: { value: string; id: string }[] }>(
    `SELECT k.value, f.id FROM unnest(?::text[]) AS k (value)
       CROSS JOIN LATERAL (${FLOOR_SQL[kind]}) AS f`,
    [[...values], tenantId, kept - 1],
  );
  return new Map(rows.map(({ value, id }) => [value, id]));
}

type Removal = (trx: Knex, records: readonly DueRecord[]) => Promise<number>;

const idsOf = (records: readonly DueRecord[]) => records.map(({ id }) => id);

async function deleteRows(trx: Knex, sql: string, bindings: readonly Knex.RawBinding[]) {
  const { rowCount } = await trx.raw<{ rowCount: number }>(sql, [...bindings]);
  return rowCount;
}

/** Deletes the first parts of records. The ids bound the partitions that PostgreSQL reads. */
const removeParts =
  (table: string, parent: string): Removal =>
  async (trx, records) => {
    const ids = idsOf(records);
    const [record] = records;
    const until = records.length === 1 && record ? record.first + MAX_ROWS : 2 ** 31 - 1;
    return deleteRows(trx, `DELETE FROM ${table} WHERE ${parent} = ANY (?::text[]) AND line < ?`, [
      ids,
      until,
    ]);
  };

/** Locks those rows that still are as `condition` says, so that nothing is deleted of others. */
async function lockRows(trx: Knex, table: string, condition: string, ids: readonly string[]) {
  const { rows } = await trx.raw<{ rows: { id: string }[] }>(
    `SELECT r.id FROM ${table} AS r WHERE r.id = ANY (?::text[]) AND ${condition} FOR UPDATE SKIP LOCKED`,
    [[...ids]],
  );
  return rows.map(({ id }) => id);
}

/** Deletes records of a kind in a transaction. Returns the number of rows. */
export const REMOVALS: Readonly<Record<RetentionKind, Removal>> = {
  importRows: removeParts('import_rows', 'import_id'),
  jobLogs: removeParts('job_logs', 'job_id'),
  jobData: async (trx, records) => {
    const ids = idsOf(records);
    const results = await deleteRows(
      trx,
      'DELETE FROM inventory_apply_results WHERE job_id = ANY (?::text[])',
      [ids],
    );
    await deleteRows(trx, 'DELETE FROM job_artifacts WHERE job_id = ANY (?::text[])', [ids]);
    const jobs = await deleteRows(
      trx,
      `UPDATE jobs SET payload = '{}', result = NULL, data_purged_at = now(), version = version + 1,
         error = CASE WHEN error IS NULL THEN NULL
           ELSE json_build_object('code', error -> 'code', 'message', error -> 'message') END
       WHERE id = ANY (?::text[])`,
      [ids],
    );
    return results + jobs;
  },
  // The marks keep backfills from running these occurrences again.
  scheduleRuns: (trx, records) =>
    deleteRows(
      trx,
      `WITH removed AS (
         DELETE FROM schedule_runs WHERE id = ANY (?::text[]) RETURNING schedule_id, kind, due_at
       ), marked AS (
         INSERT INTO purged_runs AS p (schedule_id, until_due)
         SELECT schedule_id, max(due_at) FROM removed WHERE kind <> 'trigger'
         GROUP BY schedule_id ORDER BY schedule_id
         ON CONFLICT (schedule_id) DO UPDATE
           SET until_due = greatest(p.until_due, excluded.until_due)
       )
       SELECT FROM removed`,
      [idsOf(records)],
    ),
  deliveries: async (trx, records) => {
    const ids = await lockRows(trx, 'deliveries', SOURCES.deliveries.due, idsOf(records));
    const attempts = await deleteRows(
      trx,
      'DELETE FROM delivery_attempts WHERE delivery_id = ANY (?::text[])',
      [ids],
    );
    const sql = 'DELETE FROM deliveries WHERE id = ANY (?::text[])';
    return attempts + (await deleteRows(trx, sql, [ids]));
  },
  events: async (trx, records) => {
    const ids = await lockRows(trx, 'events', 'true', idsOf(records));
    // A replay may have queued a delivery before the lock. It is seen by a statement after it.
    return deleteRows(
      trx,
      `DELETE FROM events AS r WHERE id = ANY (?::text[]) AND ${SOURCES.events.due}`,
      [ids],
    );
  },
  jobs: async (trx, records) => {
    const ids = idsOf(records);
    let rows = 0;
    for (const [table, column] of [
      ['inventory_apply_results', 'job_id'],
      ['imports', 'job_id'],
      ['restore_runs', 'job_id'],
      ['jobs', 'id'],
    ] as const)
      rows += await deleteRows(trx, `DELETE FROM ${table} WHERE ${column} = ANY (?::text[])`, [
        ids,
      ]);
    return rows;
  },
};
