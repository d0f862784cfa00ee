import { chosenRows } from '../core/chosenRows.ts';
import { SHOWN_NOW } from '../core/databaseTime.ts';
import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';
import { storableJson } from '../core/storableJson.ts';
import { notifySql, type RecordChange } from '../core/unitOfWork.ts';
import type { LogLine } from '../jobs/jobs.ts';
import { Job } from '../models/Job.ts';
import type { JobError } from '../../domain/jobs/jobs.ts';
import type { RetryPolicy } from '../../domain/jobs/retry.ts';
import { interruptAttempts, type AttemptOutcome } from './deliveryAttempts.ts';

/** SQL: when a lease ends. By the clock of the database: those of the processes may differ. */
const LEASE_END = `clock_timestamp() + ? * interval '1 ms'`;

/** A first attempt that starts: its job, and its number among the attempts of the delivery. */
export type StartingAttempt = {
  deliveryId: string;
  number: number;
  job: Partial<Job> & { id: string };
};

/**
 * Inserts jobs that are running, assigns each to its delivery and starts its first attempt. No
 * workflow runs them yet (`run_id` is null): while the lease lasts, which the caller extends, the
 * attempts are the caller's, who has locked the deliveries.
 */
export function startFirstAttempts(
  attempts: readonly StartingAttempt[],
  { leaseMs, now }: { leaseMs: number; now: Date },
): RecordChange {
  const jobs = attempts.map(({ job }) => Job.columnNameMappers.format({ ...job }));
  const columns = Object.keys(jobs[0] ?? {}).join(', ');
  return {
    topics: [],
    sql: (name) => `${name}_job AS (
       INSERT INTO jobs (${columns})
       SELECT ${columns} FROM json_populate_recordset(NULL::jobs, ?::json)
       RETURNING id, log_count, attempts, created_at
     ), ${name}_logged AS (
       INSERT INTO job_logs (job_id, line, attempt, level, message, at)
       SELECT id, log_count, attempts, 'info', 'Attempt 1 started', created_at FROM ${name}_job
     ), ${name}_a AS (
       SELECT * FROM unnest(?::text[], ?::text[], ?::integer[]) AS a (delivery_id, job_id, number)
     ), ${name} AS (
       UPDATE deliveries AS d
       SET job_id = a.job_id, in_flight = true, leased_until = ${LEASE_END}, updated_at = ?
       FROM ${name}_a AS a WHERE d.id = a.delivery_id
       RETURNING d.id
     ), ${name}_interrupted AS (
       ${interruptAttempts('?', `IN (SELECT delivery_id FROM ${name}_a)`)}
     ), ${name}_started AS (
       INSERT INTO delivery_attempts (delivery_id, number, job_id, started_at)
       SELECT delivery_id, number, job_id, ? FROM ${name}_a
     )`,
    bindings: [
      JSON.stringify(jobs),
      attempts.map(({ deliveryId }) => deliveryId),
      attempts.map(({ job }) => job.id),
      attempts.map(({ number }) => number),
      leaseMs,
      now,
      now,
      now,
    ],
  };
}

/** The outcome of a first attempt. A failed one has the error of its job. */
export type FirstAttemptOutcome = {
  deliveryId: string;
  jobId: string;
  number: number;
  outcome: AttemptOutcome;
  finishedAt: Date;
  lines: readonly LogLine[];
} & (
  | { succeeded: true; result: object }
  | { succeeded: false; error: JobError; /** As of `jobs.checked_at`. */ checkedAt: Date }
);

const toRow = (attempt: FirstAttemptOutcome) => {
  const { outcome, finishedAt } = attempt;
  return {
    delivery_id: attempt.deliveryId,
    job_id: attempt.jobId,
    number: attempt.number,
    succeeded: attempt.succeeded,
    finished_at: finishedAt,
    duration_ms: outcome.durationMs,
    http_status: outcome.httpStatus,
    error: outcome.error,
    request_headers: outcome.requestHeaders,
    response_body: outcome.responseBody,
    response_truncated: outcome.responseTruncated,
    result: attempt.succeeded ? attempt.result : null,
    job_error: attempt.succeeded ? null : attempt.error,
    checked_at: attempt.succeeded ? finishedAt : attempt.checkedAt,
    lines: attempt.lines,
  };
};

/**
 * SQL: ends the jobs of successes, notes the errors of failures, and appends to the logs. An attempt that an
 * orderly stop has ended does not count (`interruption` in services/jobs/lifecycle.ts).
 */
const jobsSql = (name: string) => `${name}_jobs AS (
    SELECT id FROM jobs
    WHERE id IN (SELECT job_id FROM ${name}_outcomes) AND status = 'running' AND run_id IS NULL
    ORDER BY id FOR UPDATE
  ), ${name}_ended AS (
    UPDATE jobs AS j SET
      status = CASE WHEN o.succeeded THEN 'succeeded' ELSE j.status END,
      finished_at = CASE WHEN o.succeeded THEN o.finished_at END,
      updated_at = o.finished_at, checked_at = o.checked_at, result = o.result,
      error = o.job_error, version = j.version + 1,
      interruptions = j.interruptions + CASE WHEN o.job_error ->> 'code' = 'interrupted'
        AND (j.retry_policy ->> 'maxAttempts')::integer > 1 THEN 1 ELSE 0 END,
      log_count = j.log_count + json_array_length(o.lines)
    FROM ${name}_outcomes AS o
    WHERE j.id = o.job_id AND j.id IN (SELECT id FROM ${name}_jobs)
    RETURNING j.id, j.log_count
  ), ${name}_logged AS (
    INSERT INTO job_logs (job_id, line, attempt, level, message, data, at)
    SELECT j.id, j.log_count - json_array_length(o.lines) + l.n, l.attempt, l.level, l.message,
           l.data, l.at
    FROM ${name}_ended AS j JOIN ${name}_outcomes AS o ON o.job_id = j.id
    CROSS JOIN LATERAL ROWS FROM (
      json_to_recordset(o.lines)
        AS (attempt integer, level text, message text, data json, at timestamptz)
    ) WITH ORDINALITY AS l (attempt, level, message, data, at, n)
  )`;

/** SQL: ends the attempts, and the deliveries of successes; frees the slots. */
const deliveriesSql = (name: string) => `${name}_attempts AS (
    UPDATE delivery_attempts AS a SET finished_at = o.finished_at, duration_ms = o.duration_ms,
      http_status = o.http_status, error = o.error, request_headers = o.request_headers,
      response_body = o.response_body, response_truncated = o.response_truncated
    FROM ${name}_outcomes AS o WHERE a.delivery_id = o.delivery_id AND a.number = o.number
  ), ${name}_deliveries AS (
    UPDATE deliveries AS d SET in_flight = false, leased_until = NULL, updated_at = o.finished_at,
      status = CASE WHEN o.succeeded THEN 'succeeded' ELSE d.status END,
      reason = CASE WHEN o.succeeded THEN NULL ELSE d.reason END
    FROM ${name}_outcomes AS o
    WHERE d.id = o.delivery_id AND d.job_id = o.job_id
      AND (o.succeeded AND d.status IN ('pending', 'cancelled')
           OR d.status = 'pending' AND d.leased_until IS NOT NULL)
      AND (SELECT count(*) FROM ${name}_ended) >= 0
    RETURNING d.job_id
  )`;

/**
 * Records the outcomes of first attempts. A success ends job and delivery, also a delivery that was
 * cancelled while it was sent. A failure frees the slot of the delivery; its job goes on with a
 * workflow, which the caller starts for each job that changes. A job that has a workflow by now does
 * not change.
 *
 * Rows are locked as everywhere: jobs before deliveries.
 */
export const recordFirstAttempts = (
  attempts: readonly FirstAttemptOutcome[],
  topics: readonly string[],
): RecordChange => ({
  topics,
  sql: (name) => `${name}_outcomes AS (
    SELECT * FROM json_to_recordset(?::json) AS o (
      delivery_id text, job_id text, number integer, succeeded boolean, finished_at timestamptz,
      duration_ms integer, http_status integer, error json, request_headers json,
      response_body text, response_truncated boolean, result json, job_error json,
      checked_at timestamptz, lines json)
  ), ${jobsSql(name)}, ${deliveriesSql(name)}, ${name} AS (
    SELECT id FROM ${name}_ended UNION ALL SELECT job_id FROM ${name}_deliveries
  )`,
  bindings: [storableJson(attempts.map(toRow))],
});

/** Makes such a change in a statement of its own. Returns the jobs that changed. */
export async function writeFirstAttempts(
  db: Knex,
  { sql, bindings, topics }: RecordChange,
): Promise<Set<string>> {
  const notify = notifySql(topics);
  const { rows }: { rows: { ids: string[] }[] } = await prepared(
    db,
    `WITH ${sql('recorded')}
     SELECT ARRAY(SELECT id FROM recorded_ended) AS ids, ${notify.sql} AS notified`,
    [...bindings, ...notify.bindings],
  );
  return new Set(rows[0]?.ids);
}

/**
 * Extends the leases of first attempts. Returns the deliveries that are still the caller's: the others
 * were cancelled, or their lease has expired and a workflow has them.
 */
export async function extendLeases(
  db: Knex,
  attempts: readonly { deliveryId: string; jobId: string }[],
  leaseMs: number,
): Promise<Set<string>> {
  const { rows }: { rows: { id: string }[] } = await prepared(
    db,
    `UPDATE deliveries AS d SET leased_until = ${LEASE_END}
     FROM unnest(?::text[], ?::text[]) AS a (delivery_id, job_id)
     WHERE d.id = a.delivery_id AND d.job_id = a.job_id AND d.status = 'pending'
       AND d.leased_until IS NOT NULL
     RETURNING d.id`,
    [leaseMs, attempts.map(({ deliveryId }) => deliveryId), attempts.map(({ jobId }) => jobId)],
  );
  return new Set(rows.map(({ id }) => id));
}

/** SQL: a first attempt is made, or was made by a process that has died. */
const LEASED = `status = 'pending' AND in_flight AND leased_until IS NOT NULL`;

/** True when the process that made a first attempt has not extended its lease in time. */
export async function hasExpiredLeases(db: Knex): Promise<boolean> {
  const { rows }: { rows: object[] } = await prepared(
    db,
    `SELECT 1 FROM deliveries WHERE ${LEASED} AND leased_until < clock_timestamp() LIMIT 1`,
    [],
  );
  return rows.length > 0;
}

/** A first attempt whose process has died. */
export type AbandonedAttempt = { jobId: string; tenantId: string; retryPolicy: RetryPolicy };

/**
 * Ends up to `limit` expired leases with their attempts, and frees their slots: the next attempts wait
 * as after any failure. The caller starts workflows for the jobs that it returns.
 */
export async function endExpiredLeases(trx: Knex, limit: number): Promise<AbandonedAttempt[]> {
  const { rows }: { rows: AbandonedAttempt[] } = await trx.raw(
    `WITH ${chosenRows(`
       SELECT id FROM deliveries WHERE ${LEASED} AND leased_until < clock_timestamp()
       ORDER BY id LIMIT ? FOR UPDATE SKIP LOCKED`)}, ended AS (
       UPDATE deliveries SET leased_until = NULL, in_flight = false
       WHERE id IN (SELECT id FROM chosen)
       RETURNING id, job_id, tenant_id
     ), interrupted AS (
       ${interruptAttempts(SHOWN_NOW, 'IN (SELECT id FROM ended)')}
     )
     SELECT e.job_id AS "jobId", e.tenant_id AS "tenantId", j.retry_policy AS "retryPolicy"
     FROM ended AS e JOIN jobs AS j ON j.id = e.job_id`,
    [limit],
  );
  return rows;
}

/** True while the first attempt of a job has a lease: the queue of deliveries goes on with it. */
export async function hasLease(db: Knex, jobId: string): Promise<boolean> {
  const { rows }: { rows: object[] } = await db.raw(
    `SELECT 1 FROM deliveries WHERE job_id = ? AND ${LEASED}`,
    [jobId],
  );
  return rows.length > 0;
}
