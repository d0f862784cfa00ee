import type { Work } from '../db/commit.ts';
import { jobChange } from '../db/jobs.ts';
import type { Job } from '../db/models/Job.ts';
import type { FinalJobStatus } from '../domain/jobs.ts';
import { cancelJob, type DispatchTask } from '../temporal/contracts.ts';
import type { JobTypes } from './jobTypes/registry.ts';
import { eventData, jobEnded, jobLogged, subject, type JobView } from './jobTrail.ts';

export type JobEnds = ReturnType<typeof createJobEnds>;

type Ended = JobView & { status: FinalJobStatus };

/** Adds to the commit that ends a job of some type what else ends with it. */
export type JobEnding = (work: Work<DispatchTask>, job: Ended) => void;

/** What belongs to the end of a job, whatever brings it about. */
export function createJobEnds({ jobTypes, endings }: { jobTypes: JobTypes; endings: Readonly<Record<string, JobEnding>> }) {
  /** Adds to the commit that ends a job: its event, and what ends with it. */
  function ended(work: Work<DispatchTask>, job: Ended): void {
    if (!jobTypes.find(job.type)?.quiet) work.emit(`job.${job.status}`, subject(job), eventData(job));
    endings[job.type]?.(work, job);
  }

  return {
    ended,

    /**
     * Asks a job that has not ended to stop: one that has not begun is cancelled at once, a running one when its
     * attempt has cleaned up.
     */
    cancel(work: Work<DispatchTask>, job: Job): void {
      const { id, status, attempts, cancelRequestedAt } = job;
      const at = work.now;
      const begun = status === 'running';
      const line = { attempt: attempts, level: 'warn', message: 'Cancellation requested', data: null, at } as const;
      work.change(jobChange(
        id, { statuses: [status] },
        { cancel_requested_at: cancelRequestedAt ?? at, updated_at: at, ...(!begun && { status: 'cancelled', finished_at: at }) },
        [line], [jobLogged(id), ...(begun ? [] : [jobEnded(id)])],
      ));
      work.dispatch(cancelJob(id));
      if (!begun) ended(work, Object.assign(job, { status: 'cancelled' as const }));
    },
  };
}
