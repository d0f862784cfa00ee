import type { Knex } from '../core/knex.ts';

/** The schedules of those of these jobs that a schedule has created, by the id of the job. */
export async function findSchedulesOfJobs(
  db: Knex,
  jobIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (jobIds.length === 0) return new Map();
  const jobs = await db('jobs')
    .whereIn('id', [...jobIds])
    .where({ source_kind: 'schedule' })
    .whereNotNull('source_id')
    .select<{ id: string; scheduleId: string }[]>('id', 'source_id AS scheduleId');
  return new Map(jobs.map(({ id, scheduleId }) => [id, scheduleId]));
}
