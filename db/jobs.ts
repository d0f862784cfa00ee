import type { Transaction } from 'objection';
import type { Knex } from './knex.ts';
import { Job } from './models/Job.ts';
import type { LogLevel } from '../domain/jobs.ts';

export type LogLine = { attempt: number; level: LogLevel; message: string; data: object | null; at: Date };

/** Column values that go with appended lines; keys are column names. */
export type JobChange = Readonly<Record<string, Knex.RawBinding>>;

/** Which state of the job the change is for: any other state is left alone. */
export type JobGuard = { statuses: readonly string[]; runId?: string };

/**
 * Changes a job and appends to its log in one statement. The row lock of the job makes the line numbers
 * gapless and their order the order of commits, so that a follower that has seen line n never misses n + 1.
 * Returns false, with nothing written, when the job is not in the guarded state.
 */
export async function changeJobAndLog(
  trx: Transaction, jobId: string, guard: JobGuard, change: JobChange, lines: readonly LogLine[],
): Promise<boolean> {
  const columns = Object.keys(change);
  const sets = ['log_count = log_count + ?', ...columns.map((column) => `${column} = ?`)];
  const bindings: Knex.RawBinding[] = [lines.length, ...Object.values(change), jobId, [...guard.statuses]];
  if (guard.runId !== undefined) bindings.push(guard.runId);
  const result = await (trx as Knex.Transaction).raw<{ rows: { changed: number }[] }>(
    `WITH job AS (
       UPDATE jobs SET ${sets.join(', ')}
       WHERE id = ? AND status = ANY (?::text[]) ${guard.runId === undefined ? '' : 'AND run_id = ?'}
       RETURNING id, log_count
     ), logged AS (
       INSERT INTO job_logs (job_id, line, attempt, level, message, data, at)
       SELECT job.id, job.log_count - ? + l.n, l.attempt, l.level, l.message, l.data::json, l.at
       FROM job, unnest(?::int[], ?::text[], ?::text[], ?::text[], ?::timestamptz[])
            WITH ORDINALITY AS l (attempt, level, message, data, at, n)
     )
     SELECT count(*) AS changed FROM job`,
    [
      ...bindings,
      lines.length,
      lines.map((line) => line.attempt),
      lines.map((line) => line.level),
      lines.map((line) => line.message),
      lines.map((line) => (line.data === null ? null : JSON.stringify(line.data))) as unknown as string[],
      lines.map((line) => line.at),
    ],
  );
  return result.rows[0]?.changed === 1;
}

/**
 * Claims the next attempt for a run, and logs it: `queued → running`, or one more attempt of the run that has the job.
 * Returns the job as it is now, or undefined when this run has nothing to do.
 */
export async function claimAttempt(
  trx: Transaction, { jobId, runId, now }: { jobId: string; runId: string; now: Date },
): Promise<Job | undefined> {
  const { rows } = await (trx as Knex.Transaction).raw<{ rows: object[] }>(
    `WITH job AS (
       UPDATE jobs SET status = 'running', run_id = ?, attempts = attempts + 1, version = version + 1,
                       started_at = COALESCE(started_at, ?), updated_at = ?, checked_at = ?, log_count = log_count + 1
       WHERE id = ? AND attempts < (retry_policy ->> 'maxAttempts')::integer
         AND (status = 'queued' OR (status = 'running' AND run_id = ?))
       RETURNING *
     ), logged AS (
       INSERT INTO job_logs (job_id, line, attempt, level, message, at)
       SELECT id, log_count, attempts, 'info', 'Attempt ' || attempts || ' started', updated_at FROM job
     )
     SELECT * FROM job`,
    [runId, now, now, now, jobId, runId],
  );
  return rows[0] && Job.fromDatabaseJson(rows[0]);
}

/** Unsettled jobs that nobody has looked at since `before`, oldest look first; marks them as looked at. */
export const takeUnsettled = (db: Knex, take: { before: Date; now: Date; limit: number }): Promise<Job[]> =>
  Job.query(db)
    .patch({ checkedAt: take.now })
    .whereIn('id', (query) =>
      query
        .select('id').from('jobs')
        .whereIn('status', ['queued', 'running']).where('checked_at', '<', take.before)
        .orderBy('checked_at').limit(take.limit).forUpdate().skipLocked(),
    )
    .returning('*') as unknown as Promise<Job[]>;

/** Which of these runs still have a call waiting in the outbox. */
export async function withOutboxRow(db: Knex, workflowIds: readonly string[]): Promise<Set<string>> {
  return new Set<string>(await db('outbox').whereIn('workflow_id', [...workflowIds]).distinct().pluck('workflow_id'));
}
