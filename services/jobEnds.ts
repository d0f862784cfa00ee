import type { Work } from '../db/commit.ts';
import { lockApproval } from '../db/approvals/approvals.ts';
import { jobChange } from '../db/jobs/jobs.ts';
import type { Job } from '../db/models/Job.ts';
import type { FinalJobStatus } from '../domain/jobs/jobs.ts';
import { bufferedRun, lockScheduleOf } from '../db/schedules/schedules.ts';
import { cancelJob, releaseSchedule, type DispatchTask } from '../temporal/contracts.ts';
import { endExecution, endOfJob } from './approvals/approvalAudit.ts';
import type { JobTypes } from './jobTypes/registry.ts';
import { eventData, jobEnded, jobLogged, subject, type JobView } from './jobs/jobAudit.ts';

export type JobEnds = ReturnType<typeof createJobEnds>;

type Ended = JobView & { status: FinalJobStatus };

/** Adds to the commit that ends a job of some type what else ends with it. */
export type JobEnding = (work: Work<DispatchTask>, job: Ended) => void;

type Sourced = Pick<Job, 'sourceKind' | 'sourceId'>;

/**
 * Takes the lock of what a job comes from, before the job's own row is locked: whoever decides about a run of the
 * schedule, or about the request, takes both in this order.
 */
async function lockSource(work: Work<DispatchTask>, { sourceKind, sourceId }: Sourced) {
  if (sourceId === null) return {};
  if (sourceKind === 'schedule')
    return { schedule: await lockScheduleOf(await work.trx(), sourceId) };
  return sourceKind === 'approval'
    ? { approval: await lockApproval(await work.trx(), sourceId) }
    : {};
}

/**
 * A run that has waited for a job of its schedule to end is looked at again when one has; the job of a request that was
 * approved ends its execution.
 */
async function tellSource(work: Work<DispatchTask>, job: Ended): Promise<void> {
  const { schedule, approval } = await lockSource(work, job);
  if (schedule && (await bufferedRun(await work.trx(), schedule.id)))
    work.dispatch(releaseSchedule(schedule, job.id));
  if (approval?.execution === 'running' && approval.jobId === job.id)
    endExecution(work, approval, endOfJob(job));
}

/** What belongs to the end of a job, whatever brings it about. */
export function createJobEnds({
  jobTypes,
  endings,
}: {
  jobTypes: JobTypes;
  endings: Readonly<Record<string, JobEnding>>;
}) {
  /** Adds to the commit that ends a job: its event, what ends with it, and what has waited for it. */
  async function ended(work: Work<DispatchTask>, job: Ended): Promise<void> {
    if (!jobTypes.find(job.type)?.quiet)
      work.emit(`job.${job.status}`, subject(job), eventData(job));
    endings[job.type]?.(work, job);
    await tellSource(work, job);
  }

  return {
    ended,

    /** For whoever locks a job to end it: what it comes from first. */
    lockSource,

    /**
     * Asks a job that has not ended to stop: one that has not begun is cancelled at once, a running one when its
     * attempt has cleaned up.
     */
    async cancel(work: Work<DispatchTask>, job: Job): Promise<void> {
      const { id, status, attempts, cancelRequestedAt } = job;
      const at = work.now;
      const begun = status === 'running';
      const line = {
        attempt: attempts,
        level: 'warn',
        message: 'Cancellation requested',
        data: null,
        at,
      } as const;
      work.change(
        jobChange(
          id,
          { statuses: [status] },
          {
            cancel_requested_at: cancelRequestedAt ?? at,
            updated_at: at,
            ...(!begun && { status: 'cancelled', finished_at: at }),
          },
          [line],
          [jobLogged(id), ...(begun ? [] : [jobEnded(id)])],
        ),
      );
      work.dispatch(cancelJob(id));
      if (!begun) await ended(work, Object.assign(job, { status: 'cancelled' as const }));
    },
  };
}
