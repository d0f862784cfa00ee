import type { Changes } from '../../db/core/notifications.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Job } from '../../db/models/Job.ts';
import { JobLog } from '../../db/models/JobLog.ts';
import { isFinal, type JobStatus } from '../../domain/jobs/jobs.ts';
import { jobLogged } from './jobAudit.ts';
import { waitForChange } from '../waitForChange.ts';

export type FollowedLog =
  { kind: 'line'; line: JobLog } | { kind: 'end'; status: JobStatus } | { kind: 'idle' };

const FOLLOW_BATCH = 500;
/** A quiet stream says that it is alive this often. */
const FOLLOW_IDLE_MS = 10_000;

/** Yields the lines of a job's log after line number `after` as they are written, then the final status. */
export async function* followLog(
  { db, changes }: { db: Knex; changes: Changes },
  jobId: string,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<FollowedLog> {
  let last = after;
  let saidAt = Date.now();
  while (!signal.aborted) {
    using change = waitForChange(changes, jobLogged(jobId));
    // The status is read before the lines: what was written before the end is then never missed.
    const job = await Job.query(db).findById(jobId).select('status');
    if (!job) return;
    const lines = await JobLog.query(db)
      .where({ job_id: jobId })
      .where('line', '>', last)
      .orderBy('line')
      .limit(FOLLOW_BATCH);
    for (const line of lines) yield { kind: 'line', line };
    last = lines.at(-1)?.line ?? last;
    if (lines.length > 0) {
      saidAt = Date.now();
      continue;
    }
    if (isFinal(job.status)) {
      yield { kind: 'end', status: job.status };
      return;
    }
    if (Date.now() - saidAt >= FOLLOW_IDLE_MS) {
      saidAt = Date.now();
      yield { kind: 'idle' };
    }
    await change.within(FOLLOW_IDLE_MS, signal);
  }
}
