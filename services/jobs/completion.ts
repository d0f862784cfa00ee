import type { Work } from '../../db/core/commit.ts';
import { jobChange } from '../../db/jobs/jobs.ts';
import type { Job } from '../../db/models/Job.ts';
import { cancelJobTask } from '../../domain/dispatch/tasks.ts';
import type { FinalJobStatus, JobSource } from '../../domain/jobs/jobs.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import type { ReportJobEnd } from './reportJobEnd.ts';
import {
  jobCancelTopic,
  jobFinishedTopic,
  jobLogTopic,
  jobRecord,
  type JobView,
} from './jobAudit.ts';

export type JobCompletion = ReturnType<typeof createJobCompletion>;

export type FinishedJob = JobView & { status: FinalJobStatus };

type JobWithSource = Pick<Job, 'sourceKind' | 'sourceId'>;

/** What an area adds to the commit that ends a job. */
export type CompletionHook = {
  onFinished(work: Work, job: FinishedJob): Promise<void> | void;
  /**
   * Locks the record that the job comes from. It runs before the job's own row is locked, so that
   * everything that changes both records takes the two locks in the same order.
   */
  lockSource?(work: Work, sourceId: string): Promise<unknown>;
} & (
  | { /** For jobs of this type. */ jobType: string }
  | { /** For jobs that come from this kind of record. */ sourceKind: JobSource['kind'] }
);

/** Everything that belongs to the end of a job, whichever way it ends. */
export function createJobCompletion({
  jobTypes,
  reportJobEnd,
}: {
  jobTypes: JobTypes;
  reportJobEnd: ReportJobEnd;
}) {
  const hooks: CompletionHook[] = [];

  const hooksFor = (job: JobWithSource & { type?: string }): CompletionHook[] =>
    hooks.filter((hook) =>
      'jobType' in hook ? hook.jobType === job.type : hook.sourceKind === job.sourceKind,
    );

  /** Adds to the commit that ends a job: its event, and what the hooks of its type and source do. */
  async function onJobFinished(work: Work, job: FinishedJob): Promise<void> {
    if (jobTypes.find(job.type)?.emitsEvents !== false)
      jobRecord.emit(work, `job.${job.status}`, job);
    for (const hook of hooksFor(job)) await hook.onFinished(work, job);
  }

  return {
    /** Adds hooks. Each area registers its own when the process is composed. */
    register(...added: readonly CompletionHook[]): void {
      hooks.push(...added);
    },

    onJobFinished,

    /** True if an area adds something to the commit that ends the job. */
    hasHooks: (job: JobWithSource & { type: string }): boolean => hooksFor(job).length > 0,

    /** Locks the record that a job comes from. Call it before the job itself is locked. */
    async lockSource(work: Work, job: JobWithSource): Promise<void> {
      if (job.sourceId === null) return;
      for (const hook of hooksFor(job)) await hook.lockSource?.(work, job.sourceId);
    },

    /**
     * Requests the cancellation of a job that has not finished. A queued job is cancelled in this
     * commit, and one that no workflow run has claimed yet; its first attempt is then given up. Any
     * other running job is cancelled when its attempt has stopped. `message` is a line of its log.
     */
    async requestCancel(work: Work, job: Job, message = 'Cancellation requested'): Promise<void> {
      const { id, status, runId, attempts, cancelRequestedAt } = job;
      const at = work.now;
      const isRunning = status === 'running' && runId !== null;
      const line = {
        attempt: attempts,
        level: 'warn',
        message,
        data: null,
        at,
      } as const;
      work.change(
        jobChange({
          jobId: id,
          guard: { statuses: [status] },
          values: {
            cancel_requested_at: cancelRequestedAt ?? at,
            updated_at: at,
            ...(!isRunning && { status: 'cancelled', finished_at: at }),
          },
          lines: [line],
          topics: [jobLogTopic(id), isRunning ? jobCancelTopic(id) : jobFinishedTopic(id)],
        }),
      );
      work.dispatch(cancelJobTask(job));
      if (isRunning) return;
      await onJobFinished(work, Object.assign(job, { status: 'cancelled' as const }));
      work.onCommitted(() => reportJobEnd(job, { status: 'cancelled', code: null, at }));
    },
  };
}
