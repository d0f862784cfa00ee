import { ignoreNoChange, type Commit } from '../../db/core/commit.ts';
import { attemptGuard } from '../../db/jobs/jobs.ts';
import { succeededChange } from '../../db/jobs/succeeded.ts';
import type { Job } from '../../db/models/Job.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import { createBatches } from '../../platform/batches.ts';
import type { Log } from '../../platform/log.ts';
import type { SharedRunRef } from './attempts.ts';
import type { JobCompletion } from './completion.ts';
import { jobFinishedTopic, jobLogTopic, jobRecord } from './jobAudit.ts';
import { toJobView, type JobLifecycle } from './lifecycle.ts';
import type { ReportJobEnd } from './reportJobEnd.ts';
import type { PendingLog } from './runLog.ts';

export type RecordTogether = ReturnType<typeof createRecordTogether>;

type Deps = {
  commit: Commit;
  jobCompletion: JobCompletion;
  jobLifecycle: JobLifecycle;
  reportJobEnd: ReportJobEnd;
  log: Log;
};

type Success = { job: Job; pendingLog: PendingLog; result: string };

/**
 * Records the successes of the jobs of a shared run. Those that come while one commit is made are
 * written by the next one, together. If that fails, each is written by itself.
 */
export function createRecordTogether({
  commit,
  jobCompletion,
  jobLifecycle,
  reportJobEnd,
  log,
}: Deps) {
  const recordAlone = ({ job, pendingLog, result }: Success): Promise<boolean> =>
    jobLifecycle.finish(job, pendingLog, {
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

  /** A function that says whether a success among these was recorded. */
  async function record(run: SharedRunRef, successes: readonly Success[]) {
    const [first, ...others] = successes;
    const done =
      first !== undefined &&
      others.length > 0 &&
      (await recordAll(run, first.job.tenantId, successes).catch((error: unknown) => {
        log.warn({ err: error, ...run }, 'ends of jobs could not be written together');
        return false;
      }));
    if (!done) return recordAlone;
    for (const { job } of successes) reportJobEnd(job, { status: 'succeeded', code: null });
    return () => true;
  }

  /** Returns the function that records a success of a run; false as in `JobLifecycle.finish`. */
  return (run: SharedRunRef) => {
    const recordInTurn = createBatches<Success, boolean>(
      // A shared run has few jobs.
      Number.POSITIVE_INFINITY,
      (successes) => record(run, successes),
      // All that end in this turn of the event loop are written together.
      () => new Promise(setImmediate),
    );
    return (job: Job, pendingLog: PendingLog, result: string): Promise<boolean> => {
      const success = { job, pendingLog, result };
      return jobCompletion.hasHooks(job) ? recordAlone(success) : recordInTurn(success);
    };
  };
}
