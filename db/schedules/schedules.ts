import type { Knex } from '../core/knex.ts';
import { Schedule } from '../models/Schedule.ts';
import { ScheduleRun } from '../models/ScheduleRun.ts';
import { SETTLE_SECONDS, type RunReason } from '../../domain/schedules/schedules.ts';

/** A schedule that is there, with its row locked until the transaction ends: whoever decides about its runs is alone. */
export const lockSchedule = async (trx: Knex, id: string): Promise<Schedule | undefined> =>
  Schedule.query(trx).findById(id).whereNull('deleted_at').forUpdate();

/** The same for those who only need to be alone with it: the payload may be large. */
export const lockScheduleOf = async (
  trx: Knex,
  id: string,
): Promise<Pick<Schedule, 'id' | 'tenantId' | 'jobType'> | undefined> =>
  Schedule.query(trx)
    .findById(id)
    .whereNull('deleted_at')
    .forUpdate()
    .select('id', 'tenant_id', 'job_type');

/** What is read where the payload is not needed. */
export const SCHEDULE_SUMMARY_COLUMNS = [
  'id',
  'tenant_id',
  'name',
  'description',
  'cron_expression',
  'timezone',
  'job_type',
  'retry_policy',
  'overlap_policy',
  'catchup_window_seconds',
  'jitter_seconds',
  'start_at',
  'end_at',
  'max_runs',
  'run_count',
  'enabled',
  'paused_at',
  'paused_by',
  'pause_reason',
  'owner',
  'next_due_at',
  'last_run_id',
  'checked_at',
  'created_by',
  'created_at',
  'updated_at',
  'deleted_at',
  'version',
];

/** A schedule that shall be in Temporal: it is there, and something is due. */
export const findMirrored = async (db: Knex, id: string): Promise<Schedule | undefined> =>
  Schedule.query(db).findById(id).whereNull('deleted_at').whereNotNull('next_due_at');

/** Jobs of a schedule that have not ended, the oldest first, at most `limit`. */
export const unfinishedJobs = (db: Knex, scheduleId: string, limit: number): Promise<string[]> =>
  db('jobs')
    .where({ source_kind: 'schedule', source_id: scheduleId })
    .whereIn('status', ['queued', 'running'])
    .orderBy('id')
    .limit(limit)
    .pluck('id');

/** The run that waits for a job of the schedule to end. */
export const bufferedRun = async (
  trx: Knex,
  scheduleId: string,
): Promise<ScheduleRun | undefined> =>
  ScheduleRun.query(trx).findOne({ schedule_id: scheduleId, outcome: 'buffered' });

/** Which of the times due from `from` up to and including `until` have a run, in milliseconds. */
export async function timesWithRun(
  db: Knex,
  scheduleId: string,
  from: Date,
  until: Date,
): Promise<Set<number>> {
  const times: Date[] = await db('schedule_runs')
    .where({ schedule_id: scheduleId, kind: 'due' })
    .whereBetween('due_at', [from, until])
    .pluck('due_at');
  return new Set(times.map((time) => time.getTime()));
}

/** A time due that no job is made for. */
export type SkippedTime = { id: string; dueAt: Date; reason: RunReason };

/**
 * Writes down times due for which nothing was done, and up to where the schedule is accounted for. Returns those that had
 * no run yet; undefined, with nothing written, when the schedule is not as it was read.
 */
export async function skipTimes(
  db: Knex,
  { id, version, nextDueAt }: Schedule,
  times: readonly SkippedTime[],
  next: Date | null,
  now: Date,
): Promise<SkippedTime[] | undefined> {
  const { rows } = await db.raw<{ rows: { written: string[] }[] }>(
    `WITH schedule AS (
       UPDATE schedules SET next_due_at = ?, last_run_id = GREATEST(last_run_id, ?)
       WHERE id = ? AND version = ? AND next_due_at = ? RETURNING id, tenant_id, owner
     ), runs AS (
       INSERT INTO schedule_runs (id, schedule_id, tenant_id, kind, due_at, outcome, reason, caught_up, actor_id, decided_at)
       SELECT t.id, s.id, s.tenant_id, 'due', t.due_at, 'skipped', t.reason, false, s.owner ->> 'actorId', ?
       FROM schedule AS s CROSS JOIN unnest(?::text[], ?::timestamptz[], ?::text[]) AS t (id, due_at, reason)
       ON CONFLICT DO NOTHING RETURNING id
     )
     SELECT ARRAY(SELECT id FROM runs) AS written FROM schedule`,
    [
      next,
      times.at(-1)?.id ?? null,
      id,
      version,
      nextDueAt,
      now,
      times.map((t) => t.id),
      times.map((t) => t.dueAt),
      times.map((t) => t.reason),
    ],
  );
  if (!rows[0]) return undefined;
  const written = new Set(rows[0].written);
  return times.filter(({ id: runId }) => written.has(runId));
}

/**
 * Schedules with a time due that should have a run by now: at once when they are paused, after their jitter and
 * the time that Temporal has for it otherwise.
 */
export const findUnaccounted = (db: Knex, now: Date, limit: number): Promise<string[]> =>
  db('schedules')
    .where('next_due_at', '<=', now)
    .whereRaw(
      `next_due_at <= ?::timestamptz - CASE WHEN enabled THEN make_interval(secs => jitter_seconds + ?) ELSE interval '0' END`,
      [now, SETTLE_SECONDS],
    )
    // Several processes may look at once: in one order they would stand in each other's way.
    .orderByRaw('random()')
    .limit(limit)
    .pluck('id');

/** Schedules with a buffered run that nothing stands before any more. */
export const findReleasable = (db: Knex, limit: number): Promise<string[]> =>
  db('schedule_runs AS r')
    .where({ outcome: 'buffered' })
    .whereNotExists((query) =>
      query
        .from('jobs AS j')
        .whereRaw('j.source_id = r.schedule_id')
        .where({ source_kind: 'schedule' })
        .whereIn('status', ['queued', 'running']),
    )
    .limit(limit)
    .pluck('schedule_id');

/** Schedules that were not compared with their mirror since `before`, the longest ago first; marks them as compared. */
export const takeUnchecked = (
  db: Knex,
  take: { before: Date; now: Date; limit: number },
): Promise<string[]> =>
  Schedule.query(db)
    .patch({ checkedAt: take.now })
    .whereIn('id', (query) =>
      query
        .select('id')
        .from('schedules')
        .whereNull('deleted_at')
        .where('checked_at', '<', take.before)
        .orderBy('checked_at')
        .limit(take.limit)
        .forUpdate()
        .skipLocked(),
    )
    .returning('id')
    .then((rows) => rows.map(({ id }) => id));

/** Schedules that shall be in Temporal, and whether they are paused. */
export async function listMirrored(
  db: Knex,
  limit: number,
): Promise<Map<string, { paused: boolean }>> {
  const rows: { id: string; enabled: boolean }[] = await db('schedules')
    .whereNull('deleted_at')
    .whereNotNull('next_due_at')
    .orderBy('id')
    .limit(limit)
    .select('id', 'enabled');
  return new Map(rows.map(({ id, enabled }) => [id, { paused: !enabled }]));
}
