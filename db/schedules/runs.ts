import { raw } from 'objection';
import type { Knex } from '../core/knex.ts';
import { Job } from '../models/Job.ts';
import { ScheduleRun } from '../models/ScheduleRun.ts';
import { notHeld } from '../retention/holds.ts';
import type { ScheduleRunData, ScheduleRunWithJob } from '../../domain/schedules/records.ts';

/**
 * The scheduled time up to which runs of a schedule were purged; null: none were. Read it after the
 * runs themselves: what is purged in between must not be missed.
 */
export async function readPurgedUntil(db: Knex, scheduleId: string): Promise<Date | null> {
  const mark = await db('purged_runs')
    .where({ schedule_id: scheduleId })
    .first<{ until_due: Date } | undefined>('until_due');
  return mark?.until_due ?? null;
}

/** A run of an occurrence, or of its backfill. `held`: a legal hold keeps it. */
export type RunAt = Pick<ScheduleRun, 'id' | 'kind' | 'dueAt' | 'outcome'> & { held: boolean };

/** The runs of occurrences and of their backfills at some times, in no order. */
export const findRunsAt = async (
  db: Knex,
  scheduleId: string,
  times: readonly Date[],
): Promise<RunAt[]> =>
  (await ScheduleRun.query(db)
    .alias('r')
    .where({ schedule_id: scheduleId })
    .whereNot({ kind: 'trigger' })
    .whereIn('due_at', [...times])
    .select(
      'id',
      'kind',
      'due_at',
      'outcome',
      raw(`NOT (${notHeld('schedule_runs', 'r')})`).as('held'),
    )) as unknown as RunAt[];

/** Adds to each run the state of the job that it created. Reads all jobs in one query. */
export async function withJobs(
  db: Knex,
  runs: readonly ScheduleRunData[],
): Promise<ScheduleRunWithJob[]> {
  const jobIds = runs.flatMap(({ jobId }) => jobId ?? []);
  if (jobIds.length === 0) return runs.map((run) => ({ ...run, job: null }));
  const jobs = await Job.query(db)
    .findByIds(jobIds)
    .select('id', 'status', 'error', 'started_at', 'finished_at');
  const byId = new Map<string | null, Job>(jobs.map((job) => [job.id, job]));
  return runs.map((run) => {
    const job = byId.get(run.jobId);
    return {
      ...run,
      job: job
        ? {
            status: job.status,
            errorCode: job.error?.code ?? null,
            startedAt: job.startedAt,
            finishedAt: job.finishedAt,
          }
        : null,
    };
  });
}
