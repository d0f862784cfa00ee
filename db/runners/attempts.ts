import type { Knex } from '../core/knex.ts';
import { lockKeySql } from '../core/advisoryLocks.ts';
import { prepared } from '../core/prepared.ts';
import type { RecordChange } from '../core/unitOfWork.ts';
import { COUNTED_ATTEMPTS } from '../jobs/jobs.ts';
import { Job } from '../models/Job.ts';

/** The attempt that a runner makes of a job, as the table `remote_attempts` has it. */
export type RemoteAttempt = {
  jobId: string;
  /** The tenant of the job. */
  tenantId: string;
  attempt: number;
  runId: string;
  runnerId: string;
  tokenId: string;
  /** SHA-256 of the token of the attempt. */
  tokenHash: Buffer;
  digest: string;
  leaseMs: number;
  /** Milliseconds that are left of the lease, by the clock of the database; 0 if it has ended. */
  leftMs: number;
  linesReceived: number;
  /** How the attempt ended, as the runner was answered; null while it runs. */
  answer: object | null;
  /** Milliseconds until the next attempt is due, by the clock of the database; 0 if it is, or none follows. */
  dueInMs: number;
  /** The log of the job says that the runner was lost. */
  lostNoted: boolean;
  /** The job is running, with this attempt, and nothing else has started. */
  isCurrent: boolean;
  cancelRequested: boolean;
  logCount: number;
};

const SELECT = `
  SELECT a.job_id AS "jobId", j.tenant_id AS "tenantId", a.attempt, a.run_id AS "runId", a.runner_id AS "runnerId",
         a.token_id AS "tokenId", a.token_hash AS "tokenHash", a.digest, a.lease_ms AS "leaseMs", a.lines_received AS "linesReceived",
         GREATEST(extract(epoch FROM a.leased_until - clock_timestamp()) * 1000, 0)::integer AS "leftMs",
         a.answer::jsonb - 'dueAt' AS answer,
         GREATEST(extract(epoch FROM (a.answer ->> 'dueAt')::timestamptz - clock_timestamp()) * 1000, 0)::integer AS "dueInMs",
         a.lost_noted AS "lostNoted", j.cancel_requested_at IS NOT NULL AS "cancelRequested", j.log_count AS "logCount",
         j.status = 'running' AND j.attempts = a.attempt AND j.run_id = a.run_id
           AND clock_timestamp() < a.ends_at AS "isCurrent"
  FROM remote_attempts AS a JOIN jobs AS j ON j.id = a.job_id`;

/** The last attempt of a job that a runner has started. */
export async function findRemoteAttempt(
  db: Knex,
  jobId: string,
): Promise<RemoteAttempt | undefined> {
  const { rows }: { rows: RemoteAttempt[] } = await prepared(db, `${SELECT} WHERE a.job_id = ?`, [
    jobId,
  ]);
  return rows[0];
}

/** The attempt with this token, locked until the transaction ends: reports of one attempt take turns. */
export async function lockRemoteAttempt(
  trx: Knex,
  jobId: string,
  tokenHash: Buffer,
): Promise<RemoteAttempt | undefined> {
  const { rows }: { rows: RemoteAttempt[] } = await prepared(
    trx,
    `${SELECT} WHERE a.job_id = ? AND a.token_hash = ? FOR UPDATE OF a`,
    [jobId, tokenHash],
  );
  return rows[0];
}

type NewAttempt = Pick<
  RemoteAttempt,
  'jobId' | 'attempt' | 'runId' | 'runnerId' | 'tokenId' | 'tokenHash' | 'digest' | 'leaseMs'
> & { concurrencyKey: string | null; limitMs: number };

/** Locks a job that has not ended until the transaction ends: those who want to begin it take turns. */
export const lockJob = async (trx: Knex, jobId: string): Promise<Job | undefined> =>
  Job.query(trx).findById(jobId).whereIn('status', ['queued', 'running']).forUpdate();

/** Notes that a runner has started an attempt. The one before it can report nothing any more. */
export const putRemoteAttempt = async (trx: Knex, attempt: NewAttempt): Promise<void> =>
  void (await prepared(
    trx,
    `WITH noted AS (UPDATE jobs SET type_digest = ? WHERE id = ?)
     INSERT INTO remote_attempts AS a (job_id, attempt, run_id, runner_id, token_id, token_hash, digest,
       concurrency_key, lease_ms, leased_until, ends_at, began_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, clock_timestamp() + ? * interval '1 ms',
             clock_timestamp() + ? * interval '1 ms', now())
     ON CONFLICT (job_id) DO UPDATE SET attempt = excluded.attempt, run_id = excluded.run_id,
       runner_id = excluded.runner_id, token_id = excluded.token_id, token_hash = excluded.token_hash,
       digest = excluded.digest, concurrency_key = excluded.concurrency_key,
       lease_ms = excluded.lease_ms, leased_until = excluded.leased_until, ends_at = excluded.ends_at,
       began_at = excluded.began_at, lines_received = 0, answer = NULL, lost_noted = false`,
    [
      ...[attempt.digest, attempt.jobId],
      ...[attempt.jobId, attempt.attempt, attempt.runId, attempt.runnerId, attempt.tokenId],
      ...[attempt.tokenHash, attempt.digest, attempt.concurrencyKey, attempt.leaseMs],
      ...[attempt.leaseMs, attempt.limitMs],
    ],
  ));

/** Renews the lease of an attempt, and counts the lines that it has sent. */
export const renewLease = async (trx: Knex, jobId: string, linesReceived: number): Promise<void> =>
  void (await prepared(
    trx,
    `UPDATE remote_attempts SET lines_received = ?,
       leased_until = LEAST(clock_timestamp() + lease_ms * interval '1 ms', ends_at)
     WHERE job_id = ?`,
    [linesReceived, jobId],
  ));

/**
 * Keeps the answer to the end of an attempt that has none yet, for a runner that asks again, and with it when the
 * next attempt is due.
 */
export const answerChange = (
  { jobId, attempt }: Pick<RemoteAttempt, 'jobId' | 'attempt'>,
  answer: { retryInMs: number | null },
): RecordChange => ({
  topics: [],
  sql: (name) => `${name} AS (
    UPDATE remote_attempts SET answer = (?::jsonb || jsonb_build_object(
      'dueAt', clock_timestamp() + ?::double precision * interval '1 ms'))::json
    WHERE job_id = ? AND attempt = ? AND answer IS NULL
    RETURNING job_id)`,
  bindings: [JSON.stringify(answer), answer.retryInMs, jobId, attempt],
});

/** SQL: no other attempt follows the one that the job `j` has. */
const IS_LAST = `${COUNTED_ATTEMPTS} >= (j.retry_policy ->> 'maxAttempts')::integer`;

/**
 * SQL: the runner of the job `j` may run its attempt, of the alias `a`, whether the job has ended or not: until
 * the lease has ended. The last attempt goes on without a lease while its runner does not reach the API.
 */
const MAY_RUN = `a.attempt = j.attempts AND a.answer IS NULL
  AND (a.leased_until > clock_timestamp() OR (${IS_LAST} AND a.ends_at > clock_timestamp()))`;

/**
 * True when the last attempt of a job has not ended within its limit: its runner was lost, and whether another
 * one asks for the job says nothing about it any more.
 */
export async function isRunnerLost(db: Knex, jobId: string): Promise<boolean> {
  const { rows }: { rows: object[] } = await prepared(
    db,
    `SELECT FROM remote_attempts AS a JOIN jobs AS j ON j.id = a.job_id
     WHERE a.job_id = ? AND a.attempt = j.attempts AND j.status = 'running' AND a.answer IS NULL
       AND a.ends_at < clock_timestamp() AND ${IS_LAST}`,
    [jobId],
  );
  return rows.length > 0;
}

/** SQL: the lease of the attempt `a` of the running job `j` has ended, and another attempt may follow. */
const IS_FREE = `a.attempt = j.attempts AND j.status = 'running' AND a.answer IS NULL
  AND a.leased_until < clock_timestamp() AND NOT ${IS_LAST}`;

/**
 * SQL: since when the running job `j` waits for a runner that makes the attempt after `a`: that has lost its runner, or has
 * ended and the next one is due. Null if it does not wait.
 */
export const WAITS_SINCE = `CASE WHEN ${IS_FREE} THEN a.leased_until
  WHEN a.attempt = j.attempts AND j.status = 'running' AND a.answer ->> 'retryInMs' IS NOT NULL
    AND (a.answer ->> 'dueAt')::timestamptz < clock_timestamp() THEN (a.answer ->> 'dueAt')::timestamptz
  END`;

/** `WAITS_SINCE` of a job. */
export async function waitsSince(db: Knex, jobId: string): Promise<Date | null> {
  const { rows }: { rows: { since: Date | null }[] } = await prepared(
    db,
    `SELECT ${WAITS_SINCE} AS since
     FROM remote_attempts AS a JOIN jobs AS j ON j.id = a.job_id WHERE a.job_id = ?`,
    [jobId],
  );
  return rows[0]?.since ?? null;
}

/** Marks an attempt whose runner was lost, if another one may follow. False if it was marked before. */
export async function markLost(trx: Knex, jobId: string, attempt: number): Promise<boolean> {
  const { rows }: { rows: object[] } = await prepared(
    trx,
    `UPDATE remote_attempts AS a SET lost_noted = true FROM jobs AS j
     WHERE a.job_id = ? AND a.attempt = ? AND NOT a.lost_noted AND j.id = a.job_id AND ${IS_FREE}
     RETURNING 1`,
    [jobId, attempt],
  );
  return rows.length > 0;
}

/**
 * The number of attempts with a key that may run now, without those of `exceptJobId`. Until the transaction
 * ends, no other one is counted.
 */
export async function countConcurrent(
  trx: Knex,
  key: string,
  exceptJobId: string,
): Promise<number> {
  await prepared(trx, `SELECT pg_advisory_xact_lock(${lockKeySql('concurrency', '?::text')})`, [
    key,
  ]);
  const { rows }: { rows: { count: number }[] } = await prepared(
    trx,
    `SELECT count(*)::integer AS count
     FROM remote_attempts AS a JOIN jobs AS j ON j.id = a.job_id
     WHERE a.concurrency_key = ? AND a.job_id <> ? AND j.status <> 'queued' AND ${MAY_RUN}`,
    [key, exceptJobId],
  );
  return rows[0]?.count ?? 0;
}

/**
 * A job does not start yet, although it has a slot: others of its pool get it in the meantime. True if the
 * slot is free now; a job whose attempt may run keeps it. The job is locked by a statement before: one that waits for
 * the lock itself would not see an attempt that has started in the meantime.
 */
export async function releaseSlot(trx: Knex, jobId: string): Promise<boolean> {
  if (!(await lockJob(trx, jobId))) return false;
  const { rows }: { rows: object[] } = await prepared(
    trx,
    `UPDATE jobs AS j SET slot = NULL WHERE j.id = ? AND j.slot = 'held' AND NOT EXISTS (
       SELECT FROM remote_attempts AS a WHERE a.job_id = j.id AND j.status = 'running' AND ${MAY_RUN})
     RETURNING 1`,
    [jobId],
  );
  return rows.length > 0;
}

/** How many unfinished jobs of a type are older than a job, counted up to `limit`. */
export async function countOlder(
  trx: Knex,
  { id, type }: { id: string; type: string },
  limit: number,
): Promise<number> {
  const { rows }: { rows: { count: number }[] } = await prepared(
    trx,
    `SELECT count(*)::integer AS count FROM (
       SELECT FROM jobs WHERE status IN ('queued', 'running') AND pool <> '' AND type = ? AND id < ?
       LIMIT ?) AS older`,
    [type, id, limit],
  );
  return rows[0]?.count ?? 0;
}
