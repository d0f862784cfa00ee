import type { JobError } from '../../domain/jobs/jobs.ts';
import type { Knex } from '../core/knex.ts';
import type { RecordChange } from '../core/unitOfWork.ts';
import { Job } from '../models/Job.ts';

export type RevokedJob = Pick<Job, 'id' | 'tenantId' | 'type' | 'sourceKind' | 'sourceId'>;

/**
 * True for a job whose token is revoked, or whose account is disabled as in `findUserAuthState`. A restore may
 * have deleted either.
 */
const IS_REVOKED = `(
  authority->>'tokenId' IS NOT NULL AND NOT EXISTS (
    SELECT FROM tokens t WHERE t.id = authority->>'tokenId' AND t.revoked_at IS NULL)
  OR authority->>'userId' IS NOT NULL AND NOT EXISTS (
    SELECT FROM users u LEFT JOIN providers p ON p.id = u.provider_id
    WHERE u.id = authority->>'userId' AND u.enabled
      AND COALESCE(p.enabled, u.provider_id = 'service')))`;

export type RevokedStatus = 'running' | 'waiting';

/**
 * The jobs in a status: running ones whose cancellation was not requested, and queued ones that wait for their slot,
 * which have neither a workflow nor an attempt.
 */
const CONDITIONS: Readonly<Record<RevokedStatus, string>> = {
  running: `status = 'running' AND cancel_requested_at IS NULL`,
  waiting: `status = 'queued' AND slot = 'waiting' AND run_id IS NULL`,
};

/** Jobs after this id whose authority has ended. */
export async function findRevokedJobs(
  db: Knex,
  status: RevokedStatus,
  { afterId, limit }: { afterId: string; limit: number },
): Promise<RevokedJob[]> {
  return Job.query(db)
    .select('id', 'tenant_id', 'type', 'source_kind', 'source_id')
    .whereRaw(CONDITIONS[status])
    .where('id', '>', afterId)
    .whereRaw(IS_REVOKED)
    .orderBy('id')
    .limit(limit);
}

/** Locks those of the jobs that still wait for their slot. */
export const lockWaitingJobs = async (trx: Knex, jobIds: readonly string[]): Promise<Job[]> =>
  Job.query(trx)
    .whereIn('id', [...jobIds])
    .whereRaw(CONDITIONS.waiting)
    .orderBy('id')
    .forUpdate();

/** Ends locked jobs that have made no attempt, in one statement, with a line in the log of each. */
export const failedChange = (
  jobIds: readonly string[],
  { error, line, now, topics }: { error: JobError; line: string; now: Date; topics: string[] },
): RecordChange => ({
  topics,
  sql: (name) => `${name} AS (
     UPDATE jobs SET log_count = log_count + 1, version = version + 1, status = 'failed', updated_at = ?, finished_at = ?,
            error = ?::json
     WHERE id = ANY (?::text[])
     RETURNING id, log_count, attempts
   ), ${name}_logged AS (
     INSERT INTO job_logs (job_id, line, attempt, level, message, at)
     SELECT id, log_count, attempts, 'error', ?, ? FROM ${name}
   )`,
  bindings: [now, now, JSON.stringify(error), [...jobIds], line, now],
});
