import type { Work } from '../../db/core/commit.ts';
import { Job } from '../../db/models/Job.ts';
import { mayUseJobType } from '../../domain/access/jobTypeRights.ts';
import { needsSlot, type JobType } from '../../domain/jobs/jobType.ts';
import type { Ids } from '../../platform/ids.ts';
import {
  startJobTask,
  type FailedFirstAttempt,
  type StartJobTask,
} from '../../domain/dispatch/tasks.ts';
import { jobTypeDenied } from '../access/access.ts';
import { jobRecord } from './jobAudit.ts';
import { newJobRow, type NewJob } from './newJob.ts';

export type JobFactory = ReturnType<typeof createJobFactory>;

/** Creates jobs, for callers and for schedules, approvals, deliveries and imports alike. */
export function createJobFactory({ ids, heartbeatMs }: { ids: Ids; heartbeatMs: number }) {
  /** The outbox task that starts the workflow of a job, at the beginning or after a first attempt. */
  const startTask = (
    job: { id: string; type: string; tenantId: string; trace?: string | null },
    type: JobType,
    firstAttempt?: FailedFirstAttempt,
  ): StartJobTask =>
    startJobTask(job, {
      lane: type.lane,
      timeoutMs: type.timeoutMs,
      heartbeatMs,
      ...(firstAttempt && { firstAttempt }),
      ...(type.lane === 'remote' && {
        heartbeatMs: type.definition.lostAfterSeconds * 1_000,
        remote: { pool: type.pool, type: type.name },
      }),
    });

  /**
   * The row of a new job, for callers that insert many in one statement. Every job comes from here, so
   * this is the last check, whatever creates the job. Error: `permission_denied` if the rights of the
   * caller exclude the type.
   */
  function build(newJob: NewJob, now: Date) {
    const { type, caller } = newJob;
    const row = newJobRow(newJob, { id: ids.next('job'), now });
    if (!mayUseJobType(caller.rights, type, row)) throw jobTypeDenied(type, caller.rights, row);
    return row;
  }

  /**
   * Adds a job to a commit without starting it. The caller runs its workflow as a child. Errors: those
   * of `build`.
   */
  const createWithoutStart = (work: Work, newJob: NewJob): Job =>
    add(work, newJob.type, build(newJob, work.now));

  function add(work: Work, type: JobType, row: ReturnType<typeof build>): Job {
    const job = work.insert(Job, row);
    if (type.emitsEvents) jobRecord.created(work, job);
    else jobRecord.acted(work, 'create', job, { after: job });
    return job;
  }

  return {
    startTask,
    build,
    createWithoutStart,

    /**
     * Adds a job to a commit: the record, its audit entry and event, and the start of its workflow.
     * A job that needs a slot is started when it gets one. Errors: those of `build`.
     */
    create(work: Work, newJob: NewJob): Job {
      const { type } = newJob;
      const row = build(newJob, work.now);
      if (needsSlot(type.lane)) {
        work.awaitSlot();
        return add(work, type, { ...row, slot: 'waiting' });
      }
      const job = add(work, type, row);
      work.dispatch(startTask(job, type));
      return job;
    },
  };
}
