import { ignoreNoChange, type Commit } from '../../db/core/commit.ts';
import { attemptGuard } from '../../db/jobs/jobs.ts';
import { succeededChange } from '../../db/jobs/succeeded.ts';
import type { Job } from '../../db/models/Job.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import type { Log } from '../../platform/log.ts';
import type { JobAttempts, SharedRunRef } from './attempts.ts';
import type { JobCompletion } from './completion.ts';
import { jobFinishedTopic, jobLogTopic, jobRecord } from './jobAudit.ts';
import { toJobView } from './lifecycle.ts';
import type { ReportJobEnd } from './reportJobEnd.ts';
import type { PendingLog } from './runLog.ts';

export type RecordTogether = ReturnType<typeof createRecordTogether>;

type Deps = {
  commit: Commit;
  jobCompletion: JobCompletion;
  jobAttempts: Pick<JobAttempts, 'lifecycle'>;
  reportJobEnd: ReportJobEnd;
  log: Log;
};

type Success = { job: Job; pendingLog: PendingLog; result: string };
type Waiting = Success & { resolve(done: boolean | Promise<boolean>): void };

/**
 * Records the successes of the jobs of a shared run. Those that come while one commit is made are
 * written by the next one, together. If that fails, each is written by itself.
 */
export function createRecordTogether({
  commit,
  jobCompletion,
  jobAttempts,
  reportJobEnd,
  log,
}: Deps) {
  const recordAlone = ({ job, pendingLog, result }: Success): Promise<boolean> =>
    jobAttempts.lifecycle.finish(job, pendingLog, {
      status: 'succeeded',
      result,
      guard: attemptGuard(job),
    });

  /** False if one of the attempts is not the current one any more: nothing was written then. */
  const recordAll = (
    { runId, workflowId }: SharedRunRef,
    tenantId: string,
    successes: readonly Success[],
  ): Promise<boolean> =>
    commit(systemCaller(tenantId, workflowId), async (work) => {
      const rows = successes.map(({ job, pendingLog: { lines, progress }, result }) => ({
        id: job.id,
        attempts: job.attempts,
        result,
        progress: progress.progress ?? null,
        lines,
      }));
      const topics = rows.flatMap(({ id }) => [jobFinishedTopic(id), jobLogTopic(id)]);
      work.change(succeededChange(runId, rows, work.now, topics));
      for (const { job } of successes) {
        const finished = { ...toJobView(job), status: 'succeeded' as const, error: null };
        jobRecord.acted(work, 'succeed', job, { before: job, after: finished });
        await jobCompletion.onJobFinished(work, finished);
      }
      return true;
    }).catch(ignoreNoChange(false));

  async function write(run: SharedRunRef, waiting: readonly Waiting[]): Promise<void> {
    const [first] = waiting;
    if (!first) return;
    const done =
      waiting.length > 1 &&
      (await recordAll(run, first.job.tenantId, waiting).catch((error: unknown) => {
        log.warn({ err: error, ...run }, 'ends of jobs could not be written together');
        return false;
      }));
    for (const each of waiting) {
      if (done) reportJobEnd(each.job, { status: 'succeeded', code: null });
      each.resolve(done || recordAlone(each));
    }
  }

  /** Returns the function that records a success of a run; false as in `JobLifecycle.finish`. */
  return (run: SharedRunRef) => {
    const waiting: Waiting[] = [];
    let writing = false;

    async function writeAll(): Promise<void> {
      writing = true;
      while (waiting.length > 0) {
        // All that end in this turn of the event loop are written together.
        await new Promise(setImmediate);
        await write(run, waiting.splice(0));
      }
      writing = false;
    }

    return (job: Job, pendingLog: PendingLog, result: string): Promise<boolean> => {
      if (jobCompletion.hasHooks(job)) return recordAlone({ job, pendingLog, result });
      const { promise, resolve } = Promise.withResolvers<boolean>();
      waiting.push({ job, pendingLog, result, resolve });
      if (!writing) void writeAll();
      return promise;
    };
  };
}
