import type { Work } from '../db/commit.ts';
import { Job } from '../db/models/Job.ts';
import type { Caller } from '../domain/shared/caller.ts';
import type { JobType } from '../domain/jobType.ts';
import type { Ids } from '../platform/ids.ts';
import { startJob, type DispatchTask, type JobRun } from '../temporal/contracts.ts';
import { auditView, eventData, subject } from './jobs/jobAudit.ts';
import { newJob, type JobOrigin, type JobRequest } from './jobs/newJob.ts';

export type JobStarts = ReturnType<typeof createJobStarts>;

/** What belongs to the begin of a job, whatever asks for it. */
export function createJobStarts({ ids, heartbeatMs }: { ids: Ids; heartbeatMs: number }) {
  /** The call that starts a job's run. */
  const startOf = (
    job: { id: string; type: string; tenantId: string },
    { lane, timeoutMs }: JobType,
  ): JobRun => startJob(job, { lane, timeoutMs, heartbeatMs });

  /** A job as it is written first, for those who write many at once. */
  const make = (type: JobType, request: JobRequest, caller: Caller, from: JobOrigin, now: Date) =>
    newJob(type, request, caller, from, { id: ids.next('job'), now });

  /** Adds a job to a commit, without its start: whoever adds it runs it. */
  function record(
    work: Work<DispatchTask>,
    type: JobType,
    request: JobRequest,
    caller: Caller,
    from: JobOrigin = {},
  ): Job {
    const job = work.insert(Job, make(type, request, caller, from, work.now));
    work.audit('job.create', subject(job), { after: auditView(job) });
    if (!type.quiet) work.emit('job.created', subject(job), eventData(job));
    return job;
  }

  return {
    startOf,
    make,
    record,

    /** Adds a job that a caller asked for to a commit: the record, its trail and its start. */
    add(
      work: Work<DispatchTask>,
      type: JobType,
      request: JobRequest,
      caller: Caller,
      from: JobOrigin = {},
    ): Job {
      const job = record(work, type, request, caller, from);
      work.dispatch(startOf(job, type));
      return job;
    },
  };
}
