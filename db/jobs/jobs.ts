import { raw } from 'objection';
import { claimChosen } from '../core/chosenRows.ts';
import type { Knex } from '../core/knex.ts';
import { bindArray } from '../core/sql.ts';
import { Job } from '../models/Job.ts';
import { readBounded } from '../core/boundedRows.ts';
import { JobLog } from '../models/JobLog.ts';
import { scopeCondition } from '../core/scopeSql.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { LogLevel } from '../../domain/jobs/jobs.ts';
import { MAX_FREE_INTERRUPTIONS } from '../../domain/jobs/retry.ts';
import type { Scope } from '../../domain/access/scope.ts';
import { prepared } from '../core/prepared.ts';
import { notifySql, type RecordChange } from '../core/unitOfWork.ts';
import {
  NO_EVENTS,
  STARTED_EVENTS,
  startedEventBindings,
  type ClaimReport,
} from './startedEvents.ts';

const JOB_COLUMNS = `id, type, tenant_id, status, payload, retry_policy, result, error, progress,
  attempts, log_count, run_id, created_by, authority, source_kind, source_id, retry_of,
  cancel_requested_at, created_at, updated_at, started_at, finished_at, checked_at, version, slot,
  workflow_id, data_purged_at, leased_until, target_site_id, target_device_id, site_id, device_id,
  pool, type_digest, interruptions, trace`;

/** The columns with the resource scope of a job. */
export const JOB_SCOPE = { tenant: 'tenant_id', site: 'site_id', device: 'device_id' } as const;

/** All columns but payload and result, which may have a megabyte each. */
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

/** New column values; the keys are column names. */
export type JobValues = Readonly<Record<string, Knex.RawBinding>>;

/** The state that a job must be in for a change. In another state, nothing is changed. */
export type JobGuard = {
  statuses: readonly string[];
  /** The attempt must be the current one: a worker that Temporal considers lost may still write. */
  attempt?: { runId: string; number: number };
};

/** The guard of changes that the current attempt of a job makes. */
export const attemptGuard = (job: Job): JobGuard => ({
  statuses: ['running'],
  attempt: { runId: assertDefined(job.runId, 'job.runId'), number: job.attempts },
});

export type JobChange = {
  jobId: string;
  guard: JobGuard;
  values?: JobValues;
  /** Lines for the log of the job. */
  lines?: readonly LogLine[];
  /** Topics of notifications. */
  topics?: readonly string[];
  /** False for changes of log and progress alone: they must not invalidate an `If-Match`. */
  newVersion?: boolean;
};

/**
 * Changes a job and appends lines to its log. The row lock of the job makes line numbers gapless,
 * in the order of commits, so a follower that has read line n never misses line n + 1.
 */
export function jobChange({
  jobId,
  guard,
  values = {},
  lines = [],
  topics = [],
  newVersion = true,
}: JobChange): RecordChange {
  const columns = Object.keys(values);
  const counts = ['log_count = log_count + ?', ...(newVersion ? ['version = version + 1'] : [])];
  const sets = [...counts, ...columns.map((column) => `${column} = ?`)];
  const attemptBindings = guard.attempt ? [guard.attempt.runId, guard.attempt.number] : [];
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
      ...attemptBindings,
      lines.length,
      lines.map((line) => line.attempt),
      lines.map((line) => line.level),
      lines.map((line) => line.message),
      bindArray(lines.map(({ data }) => data && JSON.stringify(data))),
      lines.map((line) => line.at),
    ],
  };
}

/** Makes a job change in a statement of its own. Does nothing when the guard does not hold. */
export async function writeJobChange(
  db: Knex,
  { sql, bindings, topics }: RecordChange,
): Promise<void> {
  const notify = notifySql(topics);
  await db.raw(`WITH ${sql('job')} SELECT ${notify.sql} FROM job`, [
    ...bindings,
    ...notify.bindings,
  ]);
}

/**
 * `needsSlot`: only a job that holds a slot is claimed. `isShort`: the claim of jobs that may all be
 * repeated need not survive a crash of PostgreSQL. It does not wait for the disk; the commit that
 * ends the job, a moment later, makes it durable too.
 */
type JobsClaim = {
  jobIds: readonly string[];
  runId: string;
  /** The workflow of the run, if it is not the job's own. It takes no job over. */
  workflowId?: string | null;
  needsSlot: boolean;
  isShort?: boolean;
  /** The types that this process can run; null for all. Jobs of others are left to other processes. */
  types?: readonly string[] | null;
  /** For a process that makes the attempts without a run: how long they belong to it, at most. */
  leaseMs?: number | null;
  now: Date;
} & ClaimReport;

/** SQL: `countedAttempts`. */
export const COUNTED_ATTEMPTS = `attempts - LEAST(interruptions, ${MAX_FREE_INTERRUPTIONS})`;

const asArray = (types: readonly string[] | null): string[] | null => types && [...types];

/** SQL: when a lease ends, by the clock of the database; NULL without one. */
const LEASE_END = `clock_timestamp() + ?::double precision * interval '1 ms'`;

/**
 * Claims and logs the next attempt of each job: the first one of a queued job, or another one for
 * the run that has the job. A running job without a run has made its first attempt in a shared run,
 * or without a workflow. An attempt whose lease has expired was left by its process: the job's own
 * workflow repeats it, or the shared one that was to come. No attempt follows the request to cancel a
 * job, which Temporal may learn of later. Returns the changed jobs, without those
 * for which this run has nothing to do.
 */
export async function claimAttempts(
  db: Knex,
  {
    jobIds,
    runId,
    workflowId = null,
    needsSlot,
    isShort = false,
    types = null,
    leaseMs = null,
    now,
    startedEvents = NO_EVENTS,
    topics = [],
  }: JobsClaim,
): Promise<Job[]> {
  const notify = notifySql(topics);
  const { rows }: { rows: object[] } = await prepared(
    db,
    `WITH job AS (
       UPDATE jobs SET status = 'running', run_id = ?, workflow_id = ?, attempts = attempts + 1, version = version + 1,
                       leased_until = ${LEASE_END},
                       started_at = COALESCE(started_at, ?), updated_at = ?, checked_at = ?, log_count = log_count + 1
       WHERE id = ANY (?::text[]) AND (?::text[] IS NULL OR type = ANY (?::text[]))
         AND ${COUNTED_ATTEMPTS} < (retry_policy ->> 'maxAttempts')::integer
         AND (status = 'queued' OR (status = 'running' AND cancel_requested_at IS NULL
           AND (run_id = ? OR (run_id IS NULL AND ?::boolean)
             OR (leased_until < clock_timestamp() AND (?::boolean OR workflow_id = ?)))))
         AND (slot = 'held' OR NOT ?::boolean)
       RETURNING ${JOB_COLUMNS}, attempts = 1 AS is_first
     ), logged AS (
       INSERT INTO job_logs (job_id, line, attempt, level, message, at)
       SELECT id, log_count, attempts, 'info', 'Attempt ' || attempts || ' started', updated_at FROM job
     ), ${STARTED_EVENTS}, unsynced AS (
       SELECT set_config('synchronous_commit', 'off', true)
       FROM (SELECT bool_and((retry_policy ->> 'maxAttempts')::integer > 1) AS repeatable FROM job) AS claimed
       WHERE ?::boolean AND repeatable
     )
     SELECT ${JOB_COLUMNS} FROM job CROSS JOIN (SELECT count(*) FROM unsynced) AS settings
     WHERE ${notify.sql} >= 0`,
    [
      ...[runId, workflowId, leaseMs, now, now, now, [...jobIds], asArray(types), asArray(types)],
      ...[runId, workflowId === null, workflowId === null, workflowId, needsSlot],
      ...startedEventBindings(jobIds, startedEvents),
      isShort,
      ...notify.bindings,
    ],
  );
  return rows.map((row) => Job.fromDatabaseJson(row));
}

/** An attempt that a process makes without a run, and for how long it still belongs to the process. */
export type LeasedAttempt = { jobId: string; runId: string; leftMs: number };

/** The attempts of jobs that processes make without a run; with `workflowId`, those that are for it. */
export async function findLeasedAttempts(
  db: Knex,
  jobIds: readonly string[],
  workflowId: string | null = null,
): Promise<LeasedAttempt[]> {
  const { rows }: { rows: LeasedAttempt[] } = await db.raw(
    `SELECT id AS "jobId", run_id AS "runId",
            GREATEST(extract(epoch FROM leased_until - clock_timestamp()) * 1000, 0)::integer AS "leftMs"
     FROM jobs WHERE id = ANY (?::text[]) AND status = 'running' AND leased_until IS NOT NULL
       AND (?::text IS NULL OR workflow_id = ?)`,
    [[...jobIds], workflowId, workflowId],
  );
  return rows;
}

/**
 * Takes a job that has not ended from a shared run, so that its own run can claim it. Returns the
 * changed job; undefined if the run does not have it any more, or its cancellation was requested.
 */
export async function takeFromRun(
  trx: Knex,
  { jobId, runId }: { jobId: string; runId: string },
): Promise<Job | undefined> {
  const { rows }: { rows: object[] } = await trx.raw(
    `UPDATE jobs SET run_id = NULL, workflow_id = NULL, leased_until = NULL
     WHERE id = ? AND cancel_requested_at IS NULL
       AND (status = 'queued' OR (status = 'running' AND run_id = ?)) RETURNING ${JOB_COLUMNS}`,
    [jobId, runId],
  );
  return rows[0] && Job.fromDatabaseJson(rows[0]);
}

/**
 * Lets a run continue a job, and the attempt that a runner makes of it, in place of a former run of the same workflow.
 * False if another one has done so.
 */
export async function takeOverFrom(
  db: Knex,
  { jobId, runId, formerRunId }: { jobId: string; runId: string; formerRunId: string },
): Promise<boolean> {
  const { rows }: { rows: object[] } = await db.raw(
    `WITH taken AS (
       UPDATE jobs SET run_id = ? WHERE id = ? AND status = 'running' AND run_id = ? RETURNING id
     ), remote AS (
       UPDATE remote_attempts SET run_id = ? FROM taken
       WHERE remote_attempts.job_id = taken.id AND remote_attempts.run_id = ?
     )
     SELECT id FROM taken`,
    [runId, jobId, formerRunId, runId, formerRunId],
  );
  return rows.length > 0;
}

/**
 * Which attempts are the current ones of their jobs, by their index. An attempt that is not there was followed by
 * another one, or its job has ended.
 */
export async function findCurrentAttempts(
  db: Knex,
  attempts: readonly { jobId: string; runId: string; attempt: number }[],
): Promise<Map<number, { isCancelRequested: boolean }>> {
  const { rows }: { rows: { n: number; isCancelRequested: boolean }[] } = await prepared(
    db,
    `SELECT a.n::integer AS n, job.cancel_requested_at IS NOT NULL AS "isCancelRequested"
     FROM unnest(?::text[], ?::text[], ?::integer[]) WITH ORDINALITY AS a (job_id, run_id, attempt, n)
     JOIN jobs AS job ON job.id = a.job_id AND job.run_id = a.run_id AND job.attempts = a.attempt
     WHERE job.status = 'running'`,
    [
      attempts.map(({ jobId }) => jobId),
      attempts.map(({ runId }) => runId),
      attempts.map(({ attempt }) => attempt),
    ],
  );
  return new Map(rows.map(({ n, isCancelRequested }) => [n - 1, { isCancelRequested }]));
}

/** True when the cancellation of a job was requested. */
export const isCancelRequested = async (db: Knex, jobId: string): Promise<boolean> =>
  (await Job.query(db).findById(jobId).whereNotNull('cancel_requested_at').select('id')) !==
  undefined;

/**
 * Claims a multi-step job for a run. It has one attempt, however often its steps are retried.
 * Returns the changed job, or undefined when this run has nothing to do.
 */
export async function claimMultiStep(
  db: Knex,
  {
    jobId,
    runId,
    types = null,
    now,
    startedEvents = NO_EVENTS,
    topics = [],
  }: { jobId: string; runId: string; types?: readonly string[] | null; now: Date } & ClaimReport,
): Promise<Job | undefined> {
  const notify = notifySql(topics);
  const { rows }: { rows: object[] } = await db.raw(
    `WITH before AS (SELECT id, status FROM jobs WHERE id = ? FOR UPDATE), job AS (
       UPDATE jobs SET status = 'running', run_id = ?, attempts = 1, version = version + 1, started_at = COALESCE(started_at, ?), updated_at = ?, checked_at = ?
       FROM before
       WHERE jobs.id = before.id AND slot = 'held' AND (?::text[] IS NULL OR type = ANY (?::text[]))
         AND (before.status = 'queued' OR (before.status = 'running' AND run_id = ?))
       RETURNING ${JOB_COLUMNS.split(/,\s+/)
         .map((column) => `jobs.${column}`)
         .join(', ')}, before.status = 'queued' AS is_first
     ), ${STARTED_EVENTS}
     SELECT ${JOB_COLUMNS} FROM job WHERE ${notify.sql} >= 0`,
    [
      ...[jobId, runId, now, now, now, asArray(types), asArray(types), runId],
      ...startedEventBindings([jobId], startedEvents),
      ...notify.bindings,
    ],
  );
  return rows[0] && Job.fromDatabaseJson(rows[0]);
}

/**
 * Locks a job until the transaction ends, before its attempt changes other records. Returns false
 * when the attempt is not the current one any more: it must not change anything then. The next
 * attempt waits for the lock.
 */
export async function lockIfCurrentAttempt(
  trx: Knex,
  { jobId, runId, attempt }: { jobId: string; runId: string; attempt: number },
): Promise<boolean> {
  const { rows }: { rows: object[] } = await trx.raw(
    "SELECT 1 FROM jobs WHERE id = ? AND status = 'running' AND run_id = ? AND attempts = ? FOR UPDATE",
    [jobId, runId, attempt],
  );
  return rows.length > 0;
}

/** The size of the lines that come with a job. */
const MAX_EMBEDDED_BYTES = 1_048_576;

/** A job and the last lines of its log, up to `limit`, fewer of large ones, oldest first, in one statement. */
export async function findWithLogs(
  db: Knex,
  jobId: string,
  scope: Scope,
  limit: number,
): Promise<{ job: Job; logs: JobLog[] } | undefined> {
  const inScope = scopeCondition(scope, JOB_SCOPE);
  const { rows }: { rows: ({ logs: JobLogRow[] | null } & object)[] } = await prepared(
    db,
    `SELECT ${JOB_COLUMNS}, (
       SELECT json_agg(l ORDER BY l.line)
       FROM (
         SELECT line, attempt, level, message, data, at FROM (
           SELECT last.*, sum(octet_length(message) + coalesce(octet_length(data::text), 0))
             OVER (ORDER BY line DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes
           FROM (SELECT line, attempt, level, message, data, at FROM job_logs WHERE job_id = j.id ORDER BY line DESC LIMIT ?) AS last
         ) AS sized WHERE coalesce(bytes, 0) < ?
       ) AS l
     ) AS logs
     FROM jobs AS j WHERE j.id = ? AND ${inScope.sql}`,
    [limit, MAX_EMBEDDED_BYTES, jobId, ...inScope.bindings],
  );
  if (!rows[0]) return undefined;
  const { logs, ...row } = rows[0];
  // Timestamps inside JSON are text.
  return {
    job: Job.fromDatabaseJson(row),
    logs: (logs ?? []).map((log) => JobLog.fromDatabaseJson({ ...log, at: new Date(log.at) })),
  };
}

/**
 * Log lines after line number `line`, oldest first: up to `limit`, fewer when they have `maxBytes`, by
 * default the size of a page.
 */
export const logLinesAfter = (
  db: Knex,
  jobId: string,
  line: number,
  { limit, maxBytes }: { limit: number; maxBytes?: number },
): Promise<{ items: JobLog[]; hasMore: boolean }> =>
  readBounded(
    JobLog.query(db).where({ job_id: jobId }).where('line', '>', line).orderBy('line'),
    limit,
    maxBytes === undefined ? {} : { maxBytes },
  );

type JobLogRow = { at: string };

/**
 * SQL with the time of a check, three times: the time of the last check that a job gets. A job that waits for its next
 * attempt, or runs, counts as checked for as long as it has not changed: the longer, the less often Temporal is
 * asked for it. Those of runners are checked in each round, as a lost runner does not change its job.
 */
const CHECKED_AT = `CASE
  WHEN status = 'running' AND pool = '' AND leased_until IS NULL
    THEN ?::timestamptz + (0.5 + random() / 2)
      * least(greatest(?::timestamptz - updated_at, interval '0'), interval '10 minutes')
  ELSE ?::timestamptz END`;

/**
 * Claims unfinished jobs that were last checked before `before`, oldest check first, by setting
 * their time of the last check to `now` or later.
 */
export const claimUnfinished = (
  db: Knex,
  options: { before: Date; now: Date; limit: number },
): Promise<Job[]> =>
  claimChosen(
    Job.query(db).patch({ checkedAt: raw(CHECKED_AT, [options.now, options.now, options.now]) }),
    Job.query(db)
      .whereIn('status', ['queued', 'running'])
      .where('checked_at', '<', options.before)
      .orderBy('checked_at')
      .limit(options.limit),
    JOB_SUMMARY_COLUMNS,
  );
