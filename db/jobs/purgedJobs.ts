import type { JobMark } from '../../domain/jobs/records.ts';
import type { Knex } from '../core/knex.ts';

type NamesJob = { jobId: string | null };

/** Finds out of records that name a job whether retention has purged it. Asks once for all of them. */
export async function jobMarksOf(
  db: Knex,
  records: readonly NamesJob[],
): Promise<(record: NamesJob) => JobMark> {
  const jobIds = [...new Set(records.flatMap(({ jobId }) => jobId ?? []))];
  const existing = new Set<string>(
    jobIds.length === 0 ? [] : await db('jobs').whereIn('id', jobIds).pluck('id'),
  );
  return ({ jobId }) => ({ jobPurged: jobId !== null && !existing.has(jobId) });
}

/** Adds to records whether the job that they name is purged. */
export async function withJobMarks<R extends NamesJob>(
  db: Knex,
  records: readonly R[],
): Promise<(R & JobMark)[]> {
  const markOf = await jobMarksOf(db, records);
  return records.map((record) => ({ ...record, ...markOf(record) }));
}
