import { claimChosen } from '../core/chosenRows.ts';
import { lockKeySql } from '../core/advisoryLocks.ts';
import type { Knex } from '../core/knex.ts';
import { Schedule } from '../models/Schedule.ts';
import { ScheduleRun } from '../models/ScheduleRun.ts';
import type { RecordChange } from '../core/unitOfWork.ts';
import { Job } from '../models/Job.ts';
import {
  CATCH_UP_DELAY_SECONDS,
  type RunKind,
  type RunReason,
} from '../../domain/schedules/schedules.ts';

/**
 * A schedule that is not deleted, with its row locked until the transaction ends. Every decision
 * about its runs holds this lock.
 */
export const lockSchedule = async (trx: Knex, id: string): Promise<Schedule | undefined> =>
  Schedule.query(trx).findById(id).whereNull('deleted_at').forUpdate();

/**
 * Takes the lock of the ends of a schedule's jobs until the transaction ends. Who ends a job holds it, and
 * who decides by the unfinished jobs; the latter lock the schedule first. The end of a job must not need
 * the row of the schedule: a restore keeps it locked for as long as it takes.
 */
export const lockJobEnds = async (trx: Knex, scheduleId: string): Promise<void> =>
  void (await trx.raw(`SELECT pg_advisory_xact_lock(${lockKeySql('scheduleJobs', '?::text')})`, [
    scheduleId,
  ]));

/** What starts the buffered run of a schedule, if it has one. */
export const findWithBufferedRun = async (
  trx: Knex,
  id: string,
): Promise<Pick<Schedule, 'id' | 'tenantId' | 'jobType'> | undefined> =>
  Schedule.query(trx)
    .findById(id)
    .whereNull('deleted_at')
    .whereExists(ScheduleRun.query(trx).where({ schedule_id: id, outcome: 'buffered' }))
    .select('id', 'tenant_id', 'job_type');

/** All columns but the payload, for reads that do not need it. */
export const SCHEDULE_SUMMARY_COLUMNS = [
  'id',
  'tenant_id',
  'name',
  'description',
  'cron_expression',
  'timezone',
  'job_type',
  'target',
  'retry_policy',
  'overlap_policy',
  'catchup_window_seconds',
  'jitter_seconds',
  'spread_seconds',
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

/** A schedule that must have a Temporal Schedule: it is not deleted and has a next occurrence. */
export const findForTemporal = async (db: Knex, id: string): Promise<Schedule | undefined> =>
  Schedule.query(db).findById(id).whereNull('deleted_at').whereNotNull('next_due_at');

/**
 * Ids of the unfinished jobs of a schedule, the oldest first, at most `limit`. From now on none of the
 * schedule's jobs ends before the commit. Requires `lockSchedule`.
 */
export async function listUnfinishedJobs(
  trx: Knex,
  scheduleId: string,
  limit: number,
): Promise<string[]> {
  await lockJobEnds(trx, scheduleId);
  return trx('jobs')
    .where({ source_kind: 'schedule', source_id: scheduleId })
    .whereIn('status', ['queued', 'running'])
    .orderBy('id')
    .limit(limit)
    .pluck('id');
}

/** Locks those of the jobs that are unfinished, in the order of their ids. */
export const lockUnfinishedJobs = async (trx: Knex, jobIds: readonly string[]): Promise<Job[]> =>
  Job.query(trx)
    .whereIn('id', [...jobIds])
    .whereIn('status', ['queued', 'running'])
    .orderBy('id')
    .forUpdate();

/** The run of an occurrence. */
export const findRun = async (
  trx: Knex,
  scheduleId: string,
  kind: RunKind,
  dueAt: Date,
): Promise<ScheduleRun | undefined> =>
  ScheduleRun.query(trx).findOne({ schedule_id: scheduleId, kind, due_at: dueAt });

/** The run that waits for a job of the schedule to end; there is at most one. */
export const findBufferedRun = async (
  trx: Knex,
  scheduleId: string,
): Promise<ScheduleRun | undefined> =>
  ScheduleRun.query(trx).findOne({ schedule_id: scheduleId, outcome: 'buffered' });

/**
 * Saves the decision about a buffered run. It is part of the statement that ends a commit, since
 * the run refers to the job that the same statement inserts.
 */
export const updateBufferedRun = ({
  id,
  outcome,
  reason,
  jobId,
  decidedAt,
}: ScheduleRun): RecordChange => ({
  topics: [],
  sql: (name: string) =>
    `${name} AS (
       UPDATE schedule_runs SET outcome = ?, reason = ?, job_id = ?, decided_at = ?
       WHERE id = ? AND outcome = 'buffered' RETURNING id
     )`,
  bindings: [outcome, reason, jobId, decidedAt, id],
});

/**
 * The occurrences from `from` to `until` (both inclusive) that have a run, as epoch milliseconds.
 */
export async function timesWithRun(
  db: Knex,
  scheduleId: string,
  from: Date,
  until: Date,
): Promise<Set<number>> {
  const times: Date[] = await db('schedule_runs')
    .where({ schedule_id: scheduleId, kind: 'scheduled' })
    .whereBetween('due_at', [from, until])
    .pluck('due_at');
  return new Set(times.map((time) => time.getTime()));
}

/** A run to be recorded for an occurrence that creates no job. */
export type SkippedRun = { id: string; dueAt: Date; reason: RunReason };

/**
 * Records skipped occurrences and sets the next pending one (`next`) of the schedule. Returns the
 * runs that were inserted: those whose occurrence had no run yet. Returns undefined and writes
 * nothing when the schedule has changed since it was read.
 */
export async function saveSkippedRuns(
  db: Knex,
  { id, version, nextDueAt }: Schedule,
  times: readonly SkippedRun[],
  next: Date | null,
  now: Date,
): Promise<SkippedRun[] | undefined> {
  const { rows } = await db.raw<{ rows: { written: string[] }[] }>(
    `WITH schedule AS (
       UPDATE schedules SET next_due_at = ?, last_run_id = GREATEST(last_run_id, ?)
       WHERE id = ? AND version = ? AND next_due_at = ? RETURNING id, tenant_id, owner
     ), runs AS (
       INSERT INTO schedule_runs (id, schedule_id, tenant_id, kind, due_at, outcome, reason,
                                  caught_up, actor_id, decided_at)
       SELECT t.id, s.id, s.tenant_id, 'scheduled', t.due_at, 'skipped', t.reason,
              false, s.owner ->> 'actorId', ?
       FROM schedule AS s
       CROSS JOIN unnest(?::text[], ?::timestamptz[], ?::text[]) AS t (id, due_at, reason)
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
 * Ids of schedules with an occurrence that should have a run by now: at its scheduled time if the
 * schedule is paused, otherwise after its delay and `CATCH_UP_DELAY_SECONDS`.
 */
export const findOverdue = (db: Knex, now: Date, limit: number): Promise<string[]> =>
  db('schedules')
    .where('next_due_at', '<=', now)
    .whereRaw(
      `next_due_at <= ?::timestamptz - CASE
         WHEN enabled THEN make_interval(secs => greatest(jitter_seconds, spread_seconds) + ?) ELSE interval '0' END`,
      [now, CATCH_UP_DELAY_SECONDS],
    )
    // Several processes read concurrently. In the same order they would compete for the same rows.
    .orderByRaw('random()')
    .limit(limit)
    .pluck('id');

/** Ids of schedules with a buffered run and no unfinished job. */
export const findReleasable = (db: Knex, limit: number): Promise<string[]> =>
  db('schedule_runs AS r')
    .where({ outcome: 'buffered' })
    .where((releasable) =>
      releasable
        .whereNotExists((query) =>
          query
            .from('jobs AS j')
            .whereRaw('j.source_id = r.schedule_id')
            .where({ source_kind: 'schedule' })
            .whereIn('status', ['queued', 'running']),
        )
        .orWhereExists((query) =>
          query
            .from('schedules AS s')
            .whereRaw('s.id = r.schedule_id')
            .where({ overlap_policy: 'allowAll' }),
        ),
    )
    .orderByRaw('random()')
    .limit(limit)
    .pluck('schedule_id');

/**
 * Ids of schedules not compared with their Temporal Schedule since `before`, the longest ago first.
 * Marks them as compared at `now`.
 */
export const claimUnchecked = (
  db: Knex,
  claim: { before: Date; now: Date; limit: number },
): Promise<string[]> =>
  claimChosen(
    Schedule.query(db).patch({ checkedAt: claim.now }),
    Schedule.query(db)
      .whereNull('deleted_at')
      .where('checked_at', '<', claim.before)
      .orderBy('checked_at')
      .limit(claim.limit),
    ['id'],
  ).then((rows) => rows.map(({ id }) => id));

/** Schedules that must have a Temporal Schedule, by id, and whether they are paused. */
export async function listForTemporal(
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
