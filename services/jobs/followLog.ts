import type { Notifications } from '../../db/core/notifications.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Job } from '../../db/models/Job.ts';
import { JobLog } from '../../db/models/JobLog.ts';
import { isFinal, type JobStatus } from '../../domain/jobs/jobs.ts';
import type { JobLogData } from '../../domain/jobs/records.ts';
import { jobLogTopic } from './jobAudit.ts';
import { waitForChange } from '../shared/waitForChange.ts';

export type LogStreamItem =
  { kind: 'line'; line: JobLogData } | { kind: 'end'; status: JobStatus } | { kind: 'idle' };

const FOLLOW_BATCH = 500;
/** Interval of the `idle` items of a stream without new lines, which keep connections open. */
const FOLLOW_IDLE_MS = 10_000;

/**
 * Yields the lines of a job's log after line number `after` as they are written, then the final
 * status.
 */
export async function* followLog(
  { db, notifications }: { db: Knex; notifications: Notifications },
  jobId: string,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<LogStreamItem> {
  let last = after;
  let lastYieldAt = Date.now();
  while (!signal.aborted) {
    using change = waitForChange(notifications, jobLogTopic(jobId));
    // Reading the status before the lines guarantees that a final status comes after all lines.
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
      lastYieldAt = Date.now();
      continue;
    }
    if (isFinal(job.status)) {
      yield { kind: 'end', status: job.status };
      return;
    }
    if (Date.now() - lastYieldAt >= FOLLOW_IDLE_MS) {
      lastYieldAt = Date.now();
      yield { kind: 'idle' };
    }
    await change.wait(FOLLOW_IDLE_MS, signal);
  }
}
