import type { Work } from '../db/commit.ts';
import { jobChange } from '../db/jobs.ts';
import type { Job } from '../db/models/Job.ts';
import type { FinalJobStatus } from '../domain/jobs.ts';
import { bufferedRun, lockScheduleOf } from '../db/schedules.ts';
import { cancelJob, releaseSchedule, type DispatchTask } from '../temporal/contracts.ts';
import type { JobTypes } from './jobTypes/registry.ts';
import { eventData, jobEnded, jobLogged, subject, type JobView } from './jobTrail.ts';

export type JobEnds = ReturnType<typeof createJobEnds>;

type Ended = JobView & { status: FinalJobStatus };

/** Adds to the commit that ends a job of some type what else ends with it. */
export type JobEnding = (work: Work<DispatchTask>, job: Ended) => void;

type FromSchedule = Pick<Job, 'id' | 'sourceKind' | 'sourceId'>;

/**
 * Takes the lock of the schedule that a job comes from, before the job's own row is locked: whoever decides about a
 * run of the schedule takes both in this order.
 */
const lockSource = async (work: Work<DispatchTask>, { sourceKind, sourceId }: FromSchedule) =>
  sourceKind === 'schedule' && sourceId !== null ? lockScheduleOf(await work.trx(), sourceId) : undefined;

/** A run that has waited for a job of its schedule to end is looked at again when one has. */
async function release(work: Work<DispatchTask>, job: FromSchedule): Promise<void> {
  const schedule = await lockSource(work, job);
  if (schedule && (await bufferedRun(await work.trx(), schedule.id))) work.dispatch(releaseSchedule(schedule, job.id));
}

/** What belongs to the end of a job, whatever brings it about. */
export function createJobEnds({ jobTypes, endings }: { jobTypes: JobTypes; endings: Readonly<Record<string, JobEnding>> }) {
  /** Adds to the commit that ends a job: its event, what ends with it, and what has waited for it. */
  async function ended(work: Work<DispatchTask>, job: Ended): Promise<void> {
    if (!jobTypes.find(job.type)?.quiet) work.emit(`job.${job.status}`, subject(job), eventData(job));
    endings[job.type]?.(work, job);
    await release(work, job);
  }

  return {
    ended,

    /** For whoever locks a job to end it: its schedule first. */
    lockSource,

    /**
     * Asks a job that has not ended to stop: one that has not begun is cancelled at once, a running one when its
     * attempt has cleaned up.
     */
    async cancel(work: Work<DispatchTask>, job: Job): Promise<void> {
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
      if (!begun) await ended(work, Object.assign(job, { status: 'cancelled' as const }));
    },
  };
}
