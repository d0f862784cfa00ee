import type { Lane } from '../../domain/jobs/jobType.ts';
import type { Knex } from '../core/knex.ts';
import type { RecordChange } from '../core/unitOfWork.ts';
import type { Job } from '../models/Job.ts';

/**
 * SQL by lane: the running job `j`, whose last attempt is `a` if runners make it, waits for its next attempt, and none
 * can be in progress. What the records do not say so clearly counts as an attempt, such as that of a worker which was lost.
 */
const WAITS: Readonly<Record<Lane, string>> = {
  // A run leaves it when a failure is recorded, and begins an attempt only when it has it.
  inline: 'j.run_id IS NULL',
  // It releases its slot when a failure is recorded, and begins an attempt only with one.
  activity: `j.slot IS DISTINCT FROM 'held'`,
  delivery: `EXISTS (SELECT FROM deliveries AS d
    WHERE d.job_id = j.id AND d.status = 'pending' AND NOT d.in_flight)`,
  remote: `a.answer ->> 'status' = 'retrying'`,
  workflow: 'false',
};

type JobAttempt = Pick<Job, 'id' | 'runId' | 'attempts'>;

const bindings = ({ id, attempts, runId }: JobAttempt): Knex.RawBinding[] => [id, attempts, runId];

const source = (lane: Lane): string => `
  FROM jobs AS j LEFT JOIN remote_attempts AS a ON a.job_id = j.id AND a.attempt = j.attempts
  WHERE j.id = ? AND j.attempts = ? AND j.run_id IS NOT DISTINCT FROM ? AND j.status = 'running'
    AND j.leased_until IS NULL AND ${WAITS[lane]}`;

/**
 * How long ago an attempt has failed, and in how long the next one is due: below 0 since it was, null where no runner was
 * answered that. Milliseconds.
 */
export type Wait = { failedMsAgo: number; dueInMs: number | null };

/** Since when a running job certainly waits for its next attempt; undefined if an attempt may be in progress. */
export async function findWait(db: Knex, job: JobAttempt, lane: Lane): Promise<Wait | undefined> {
  const { rows }: { rows: Wait[] } = await db.raw(
    `SELECT extract(epoch FROM clock_timestamp() - j.updated_at)::float * 1000 AS "failedMsAgo",
       extract(epoch FROM (a.answer ->> 'dueAt')::timestamptz - clock_timestamp())::float * 1000 AS "dueInMs"
     ${source(lane)}`,
    bindings(job),
  );
  return rows[0];
}

/**
 * Lets another run claim the next attempt of a job that waits for it: its workflow does not exist any more. The reconciler
 * checks the job again after `checkedAt`.
 */
export const leaveLostRun = (job: JobAttempt, lane: Lane, checkedAt: Date): RecordChange => ({
  topics: [],
  sql: (name) => `${name} AS (
    UPDATE jobs SET run_id = NULL, workflow_id = NULL, slot = NULL, checked_at = ?
    WHERE id IN (SELECT j.id ${source(lane)} FOR UPDATE OF j)
    RETURNING id)`,
  bindings: [checkedAt, ...bindings(job)],
});
