import type { RetentionKind } from '../../domain/retention/retention.ts';
import type { Scope } from '../../domain/access/scope.ts';
import { minIdAt } from '../../platform/ids.ts';
import { lockKeySql, tryShareUntilCommit } from '../core/advisoryLocks.ts';
import type { Knex } from '../core/knex.ts';
import { scopeCondition } from '../core/scopeSql.ts';
import { bindArray } from '../core/sql.ts';
import type { DueRecord } from './batches.ts';

/** Marks for everybody: a whole month of log lines was dropped. */
export const ALL = '';

type Mark = { tenantId: string; jobType: string; untilId: string; untilSequence: number | null };

/**
 * Records until where a kind was purged, in the transaction that purges it. A restore does not bring
 * back what is up to a mark and missing.
 */
export async function raiseMarks(
  trx: Knex,
  kind: RetentionKind,
  marks: readonly Mark[],
): Promise<void> {
  if (marks.length === 0) return;
  await trx.raw(
    `INSERT INTO purge_marks (kind, tenant_id, job_type, until_id, until_sequence, purged_at)
     SELECT ?, m.tenant_id, m.job_type, m.until_id, m.until_sequence, now()
     FROM unnest(?::text[], ?::text[], ?::text[], ?::bigint[])
       AS m (tenant_id, job_type, until_id, until_sequence)
     ON CONFLICT (kind, tenant_id, job_type) DO UPDATE SET
       until_id = greatest(purge_marks.until_id, excluded.until_id),
       until_sequence = greatest(purge_marks.until_sequence, excluded.until_sequence),
       purged_at = excluded.purged_at`,
    [
      kind,
      marks.map(({ tenantId }) => tenantId),
      marks.map(({ jobType }) => jobType),
      marks.map(({ untilId }) => untilId),
      bindArray(marks.map(({ untilSequence }) => untilSequence)),
    ],
  );
}

/** The marks of records of a tenant: one for each job type. */
export function marksOf(tenantId: string, records: readonly DueRecord[]): Mark[] {
  const marks = new Map<string, Mark>();
  for (const { type, id, sequence } of records) {
    const mark = marks.get(type);
    const untilId = mark && mark.untilId > id ? mark.untilId : id;
    const untilSequence = sequence === null ? null : Math.max(mark?.untilSequence ?? 0, sequence);
    marks.set(type, { tenantId, jobType: type, untilId, untilSequence });
  }
  return [...marks.values()];
}

/**
 * The last purged sequence among events inside `scope`, of one tenant if given; 0 if none was. With
 * `since`, only if events created then or later were purged.
 */
export async function lastPurgedSequence(
  db: Knex,
  scope: Scope,
  tenantId: string | undefined,
  since?: Date,
): Promise<number> {
  const inScope = scopeCondition(scope);
  const { rows } = await db.raw<{ rows: { sequence: number | null }[] }>(
    `SELECT max(until_sequence) AS sequence FROM purge_marks
     WHERE kind = 'events' AND ${inScope.sql} ${tenantId === undefined ? '' : 'AND tenant_id = ?'}
       AND until_id >= ?`,
    [
      ...inScope.bindings,
      ...(tenantId === undefined ? [] : [tenantId]),
      since ? minIdAt('evt', since) : '',
    ],
  );
  return rows[0]?.sequence ?? 0;
}

/**
 * All tenants, those that were deleted and have records left, too, in the order of their ids. Each
 * branch reads one entry of its index for each tenant.
 */
export async function findTenantsWithRecords(db: Knex): Promise<string[]> {
  const tenantsOf = (name: string, table: string, condition = 'true') => `${name} AS (
      (SELECT tenant_id FROM ${table} WHERE ${condition} ORDER BY tenant_id LIMIT 1)
      UNION ALL
      SELECT (SELECT t.tenant_id FROM ${table} AS t
              WHERE t.tenant_id > ${name}.tenant_id AND ${condition} ORDER BY t.tenant_id LIMIT 1)
      FROM ${name} WHERE ${name}.tenant_id IS NOT NULL
    )`;
  const { rows } = await db.raw<{ rows: { id: string }[] }>(
    `WITH RECURSIVE ${tenantsOf('j', 'jobs')}, ${tenantsOf('e', 'events', 'sequence IS NOT NULL')},
       ${tenantsOf('s', 'schedule_runs')}, ${tenantsOf('i', 'imports')}
     SELECT id FROM tenants
     UNION SELECT tenant_id FROM j WHERE tenant_id IS NOT NULL
     UNION SELECT tenant_id FROM e WHERE tenant_id IS NOT NULL
     UNION SELECT tenant_id FROM s WHERE tenant_id IS NOT NULL
     UNION SELECT tenant_id FROM i WHERE tenant_id IS NOT NULL
     UNION SELECT tenant_id FROM webhooks
     ORDER BY id`,
  );
  return rows.map(({ id }) => id);
}

/** Where an unfinished purge of a tenant is. */
export type UnfinishedPurge = {
  /** The day and the periods that it purges for. */
  doneFor: string;
  /** The kinds that are not done. */
  kinds: RetentionKind[];
  /** The key up to which the first of them is purged; null at its beginning. */
  after: string | null;
};

type Progress = { doneFor: string; unfinished: UnfinishedPurge | null };

/** For which day and periods the purge of these tenants is complete, and where an unfinished one is. */
export async function readProgress(
  db: Knex,
  tenantIds: readonly string[],
): Promise<ReadonlyMap<string, Progress>> {
  const rows = await db('purge_progress')
    .whereIn('tenant_id', [...tenantIds])
    .select<(Progress & { tenantId: string })[]>({
      tenantId: 'tenant_id',
      doneFor: 'done_for',
      unfinished: 'unfinished',
    });
  return new Map(rows.map(({ tenantId, ...progress }) => [tenantId, progress]));
}

export const saveProgress = async (db: Knex, tenantId: string, doneFor: string): Promise<void> =>
  void (await db.raw(
    `INSERT INTO purge_progress (tenant_id, done_for) VALUES (?, ?)
     ON CONFLICT (tenant_id) DO UPDATE SET done_for = excluded.done_for, unfinished = NULL`,
    [tenantId, doneFor],
  ));

/** Saves where the purges of these tenants are. */
export const saveUnfinished = async (
  db: Knex,
  purges: readonly { tenantId: string; unfinished: UnfinishedPurge }[],
): Promise<void> =>
  void (await db.raw(
    `INSERT INTO purge_progress (tenant_id, done_for, unfinished)
     SELECT u.tenant_id, '', u.unfinished FROM unnest(?::text[], ?::jsonb[]) AS u (tenant_id, unfinished)
     ON CONFLICT (tenant_id) DO UPDATE SET unfinished = excluded.unfinished`,
    [
      purges.map(({ tenantId }) => tenantId),
      purges.map(({ unfinished }) => JSON.stringify(unfinished)),
    ],
  ));

/** True when a purge is due. */
export async function isPurgeDue(db: Knex): Promise<boolean> {
  const { rows } = await db.raw<{ rows: { due: boolean }[] }>(
    'SELECT next_at <= now() AS due FROM purge_state',
  );
  return rows[0]?.due === true;
}

/**
 * Claims the purge that is due and postpones the next one. False when none is due, or one is queued
 * or running.
 */
export async function claimPurge(trx: Knex, jobType: string, everyMs: number): Promise<boolean> {
  const { rows } = await trx.raw<{ rows: object[] }>(
    `UPDATE purge_state SET next_at = now() + ? * interval '1 millisecond'
     WHERE next_at <= now() AND NOT EXISTS (
       SELECT FROM jobs WHERE type = ? AND status IN ('queued', 'running'))
     RETURNING 1`,
    [everyMs, jobType],
  );
  return rows.length > 0;
}

/** Records that a purge has left nothing due of what was due at `startedAt`. */
export const recordComplete = async (db: Knex, startedAt: Date): Promise<void> =>
  void (await db.raw('UPDATE purge_state SET complete_at = greatest(complete_at, ?)', [startedAt]));

/** Lets the next purge begin without waiting: the last one has left something. */
export const continueSoon = async (db: Knex): Promise<void> =>
  void (await db.raw('UPDATE purge_state SET next_at = now()'));

/**
 * Seconds since the start of the last purge that left nothing due, and about how many log lines are
 * outside of all months.
 */
export async function readRetentionState(
  db: Knex,
): Promise<{ lagSeconds: number; linesOutside: number }> {
  const { rows } = await db.raw<{ rows: { lagSeconds: number; linesOutside: number }[] }>(
    `SELECT extract(epoch FROM now() - complete_at)::double precision AS "lagSeconds",
       pg_stat_get_live_tuples('job_logs_other'::regclass) AS "linesOutside" FROM purge_state`,
  );
  return rows[0] ?? { lagSeconds: 0, linesOutside: 0 };
}

/** Makes purges of a tenant wait for each other. False while records are restored. */
export async function lockPurge(trx: Knex, tenantId: string): Promise<boolean> {
  if (!(await tryShareUntilCommit(trx, 'restore'))) return false;
  await trx.raw(`SELECT pg_advisory_xact_lock(${lockKeySql('purge', '?')})`, [tenantId]);
  return true;
}
