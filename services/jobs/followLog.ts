import type { Notifications } from '../../db/core/notifications.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Job } from '../../db/models/Job.ts';
import { logLinesAfter } from '../../db/jobs/jobs.ts';
import { isFinal, type JobStatus } from '../../domain/jobs/jobs.ts';
import type { JobLogData, JobSummaryData } from '../../domain/jobs/records.ts';
import { jobLogTopic } from './jobAudit.ts';
import { waitForChange } from '../shared/waitForChange.ts';

/** How far a job is: its status, the number of the last attempt, and its progress. */
export type JobState = Pick<JobSummaryData, 'status' | 'attempts' | 'progress'>;

export type LogStreamItem =
  | { kind: 'line'; line: JobLogData }
  | { kind: 'job'; job: JobState }
  | { kind: 'end'; status: JobStatus }
  | { kind: 'idle' };

/** Lines that a stream holds while its client reads them. */
const FOLLOW_BATCH = { limit: 200, maxBytes: 262_144 };
/** Interval of the `idle` items of a stream without new lines, which keep connections open. */
const FOLLOW_IDLE_MS = 10_000;

/**
 * Yields the lines of a job's log after line number `after` as they are written, and its state first
 * and whenever it has changed. After the last line come the final state and the final status.
 */
export async function* followLog(
  { db, notifications }: { db: Knex; notifications: Notifications },
  jobId: string,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<LogStreamItem> {
  let last = after;
  let lastYieldAt = performance.now();
  let lastState = '';
  const isNew = (state: JobState) => lastState !== (lastState = JSON.stringify(state));
  while (!signal.aborted) {
    using change = waitForChange(notifications, jobLogTopic(jobId));
    // Reading the state before the lines guarantees that a final one comes after all lines.
    const job = await Job.query(db).findById(jobId).select('status', 'attempts', 'progress');
    if (!job) return;
    const { status, attempts, progress } = job;
    const state = { status, attempts, progress };
    if (!isFinal(status) && isNew(state)) yield { kind: 'job', job: state };
    const { items: lines } = await logLinesAfter(db, jobId, last, FOLLOW_BATCH);
    for (const line of lines) yield { kind: 'line', line };
    last = lines.at(-1)?.line ?? last;
    if (lines.length > 0) {
      lastYieldAt = performance.now();
      continue;
    }
    if (isFinal(status)) {
      yield { kind: 'job', job: state };
      yield { kind: 'end', status };
      return;
    }
    if (performance.now() - lastYieldAt >= FOLLOW_IDLE_MS) {
      lastYieldAt = performance.now();
      yield { kind: 'idle' };
    }
    await change.wait(FOLLOW_IDLE_MS, signal);
  }
}
