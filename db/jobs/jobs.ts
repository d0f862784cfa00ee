import type { Knex } from '../core/knex.ts';
import { Job } from '../models/Job.ts';
import { JobLog } from '../models/JobLog.ts';
import { scopeCondition } from '../core/scopeSql.ts';
import type { LogLevel } from '../../domain/jobs/jobs.ts';
import type { Scope } from '../../domain/access/scope.ts';
import { prepared } from '../core/prepared.ts';
import { notifying, type Change } from '../core/unitOfWork.ts';

const JOB_COLUMNS = `id, type, tenant_id, status, payload, retry_policy, result, error, progress, attempts, log_count, run_id,
  created_by, authority, source_kind, source_id, retry_of, cancel_requested_at, created_at, updated_at, started_at,
  finished_at, checked_at, version`;

/** What is read where payload and result are not needed: they may have a megabyte each. */
export const JOB_SUMMARY_COLUMNS = JOB_COLUMNS.split(/,\s+/).filter(
  (column) => column !== 'payload' && column !== 'result',
);

export type LogLine = {
  attempt: number;
  level: LogLevel;
  message: string;
  data: object | null;
  at: Date;
};

/** Column values that go with appended lines; keys are column names. */
export type JobValues = Readonly<Record<string, Knex.RawBinding>>;

/** Which state of the job the change is for: any other state is left alone. */
export type JobGuard = {
  statuses: readonly string[];
  /** Only while this attempt of this run has the job: a worker that was taken for dead may still write. */
  attempt?: { runId: string; number: number };
};

/**
 * Changes a job and appends to its log. The row lock of the job makes the line numbers gapless and their order the
 * order of commits, so that a follower that has seen line n never misses n + 1. Lines and progress alone are no
 * new version (`newVersion`): `If-Match` is about what the job is, not how far.
 */
export function jobChange(
  jobId: string,
  guard: JobGuard,
  values: JobValues,
  lines: readonly LogLine[],
  topics: readonly string[],
  { newVersion = true } = {},
): Change {
  const columns = Object.keys(values);
  const counts = ['log_count = log_count + ?', ...(newVersion ? ['version = version + 1'] : [])];
  const sets = [...counts, ...columns.map((column) => `${column} = ?`)];
  const byAttempt = guard.attempt ? [guard.attempt.runId, guard.attempt.number] : [];
  return {
    topics,
    sql: (name) => `${name} AS (
       UPDATE jobs SET ${sets.join(', ')}
       WHERE id = ? AND status = ANY (?::text[]) ${guard.attempt ? 'AND run_id = ? AND attempts = ?' : ''}
       RETURNING id, log_count
     ), ${name}_logged AS (
       INSERT INTO job_logs (job_id, line, attempt, level, message, data, at)
       SELECT job.id, job.log_count - ? + l.n, l.attempt, l.level, l.message, l.data::json, l.at
       FROM ${name} AS job, unnest(?::int[], ?::text[], ?::text[], ?::text[], ?::timestamptz[])
            WITH ORDINALITY AS l (attempt, level, message, data, at, n)
     )`,
    bindings: [
      lines.length,
      ...Object.values(values),
      jobId,
      [...guard.statuses],
      ...byAttempt,
      lines.length,
      lines.map((line) => line.attempt),
      lines.map((line) => line.level),
      lines.map((line) => line.message),
      lines.map((line) =>
        line.data === null ? null : JSON.stringify(line.data),
      ) as unknown as string[],
      lines.map((line) => line.at),
    ],
  };
}

/** Makes such a change by itself; nothing happens when the job is in another state. */
export async function noteJobChange(db: Knex, { sql, bindings, topics }: Change): Promise<void> {
  const notify = notifying(topics);
  await db.raw(`WITH ${sql('job')} SELECT ${notify.sql} FROM job`, [
    ...bindings,
    ...notify.bindings,
  ]);
}

/**
 * Claims the next attempt for a run, and logs it: `queued → running`, or one more attempt of the run that has the job.
 * Returns the job as it is now, or undefined when this run has nothing to do.
 */
export async function claimAttempt(
  db: Knex,
  { jobId, runId, now }: { jobId: string; runId: string; now: Date },
): Promise<Job | undefined> {
  const { rows }: { rows: object[] } = await prepared(
    db,
    `WITH job AS (
       UPDATE jobs SET status = 'running', run_id = ?, attempts = attempts + 1, version = version + 1,
                       started_at = COALESCE(started_at, ?), updated_at = ?, checked_at = ?, log_count = log_count + 1
       WHERE id = ? AND attempts < (retry_policy ->> 'maxAttempts')::integer
         AND (status = 'queued' OR (status = 'running' AND run_id = ?))
       RETURNING ${JOB_COLUMNS}
     ), logged AS (
       INSERT INTO job_logs (job_id, line, attempt, level, message, at)
       SELECT id, log_count, attempts, 'info', 'Attempt ' || attempts || ' started', updated_at FROM job
     )
     SELECT ${JOB_COLUMNS} FROM job`,
    [runId, now, now, now, jobId, runId],
  );
  return rows[0] && Job.fromDatabaseJson(rows[0]);
}

/**
 * Claims a job for a run that does it in steps; its first attempt is its only one, however often a step is repeated. Returns
 * the job as it is now, or undefined when this run has nothing to do.
 */
export async function claimSteps(
  db: Knex,
  { jobId, runId, now }: { jobId: string; runId: string; now: Date },
): Promise<Job | undefined> {
  const { rows }: { rows: object[] } = await db.raw(
    `UPDATE jobs SET status = 'running', run_id = ?, attempts = 1, version = version + 1, started_at = COALESCE(started_at, ?), updated_at = ?, checked_at = ?
     WHERE id = ? AND (status = 'queued' OR (status = 'running' AND run_id = ?)) RETURNING ${JOB_COLUMNS}`,
    [runId, now, now, now, jobId, runId],
  );
  return rows[0] && Job.fromDatabaseJson(rows[0]);
}

/**
 * Locks a job for an attempt that is about to change the world: true while the attempt has it. One that was taken for dead,
 * or whose job has ended, must change nothing any more; who wants to begin another waits until the transaction ends.
 */
export async function hasAttempt(
  trx: Knex,
  { jobId, runId, attempt }: { jobId: string; runId: string; attempt: number },
): Promise<boolean> {
  const { rows }: { rows: object[] } = await trx.raw(
    "SELECT 1 FROM jobs WHERE id = ? AND status = 'running' AND run_id = ? AND attempts = ? FOR UPDATE",
    [jobId, runId, attempt],
  );
  return rows.length > 0;
}

/** A job with the last `limit` lines of its log, oldest first, in one statement. */
export async function findWithLogs(
  db: Knex,
  jobId: string,
  scope: Scope,
  limit: number,
): Promise<{ job: Job; logs: JobLog[] } | undefined> {
  const inScope = scopeCondition(scope, { tenant: 'j.tenant_id' });
  const { rows }: { rows: ({ logs: JobLogRow[] | null } & object)[] } = await prepared(
    db,
    `SELECT ${JOB_COLUMNS}, (
       SELECT json_agg(l ORDER BY l.line)
       FROM (SELECT line, attempt, level, message, data, at FROM job_logs WHERE job_id = j.id ORDER BY line DESC LIMIT ?) AS l
     ) AS logs
     FROM jobs AS j WHERE j.id = ? AND ${inScope.sql}`,
    [limit, jobId, ...inScope.bindings],
  );
  if (!rows[0]) return undefined;
  const { logs, ...row } = rows[0];
  // Inside JSON a timestamp is text.
  return {
    job: Job.fromDatabaseJson(row),
    logs: (logs ?? []).map((log) => JobLog.fromDatabaseJson({ ...log, at: new Date(log.at) })),
  };
}

type JobLogRow = { at: string };

/** Unsettled jobs that nobody has looked at since `before`, oldest look first; marks them as looked at. */
export const takeUnsettled = (
  db: Knex,
  take: { before: Date; now: Date; limit: number },
): Promise<Job[]> =>
  Job.query(db)
    .patch({ checkedAt: take.now })
    .whereIn('id', (query) =>
      query
        .select('id')
        .from('jobs')
        .whereIn('status', ['queued', 'running'])
        .where('checked_at', '<', take.before)
        .orderBy('checked_at')
        .limit(take.limit)
        .forUpdate()
        .skipLocked(),
    )
    .returning(JOB_SUMMARY_COLUMNS) as unknown as Promise<Job[]>;

/** Which of these runs still have a call waiting in the outbox. */
export async function withOutboxRow(
  db: Knex,
  workflowIds: readonly string[],
): Promise<Set<string>> {
  return new Set<string>(
    await db('outbox')
      .whereIn('workflow_id', [...workflowIds])
      .distinct()
      .pluck('workflow_id'),
  );
}
