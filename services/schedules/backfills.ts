import type { Commit } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { readPurgedUntil } from '../../db/schedules/runs.ts';
import type { JobData } from '../../domain/jobs/records.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { listOccurrences } from '../../domain/schedules/occurrences.ts';
import { invalidField } from '../../domain/shared/errors.ts';
import { BACKFILL_JOB, MAX_BACKFILL, timingOf } from '../../domain/schedules/schedules.ts';
import type { JobFactory } from '../jobs/createJob.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import type { Schedules } from './schedules.ts';
import { scheduleRecord } from './scheduleAudit.ts';

export type Backfills = ReturnType<typeof createBackfills>;

type Deps = {
  db: Knex;
  commit: Commit;
  schedules: Schedules;
  jobTypes: JobTypes;
  jobFactory: JobFactory;
};

/** Starts jobs that run past occurrences of a schedule. */
export const createBackfills = ({ db, commit, schedules, jobTypes, jobFactory }: Deps) => ({
  /**
   * Starts a job that runs the occurrences from `since` to `until` (both inclusive) that have not
   * run. Errors: `not_found`, `permission_denied`, `invalid_request` for an interval that is not in
   * the past, has no occurrence or too many, or only such whose runs are purged.
   */
  async start(
    caller: Caller,
    scheduleId: string,
    { since, until }: { since: Date; until: Date },
  ): Promise<JobData> {
    const schedule = await schedules.findToAct(caller, scheduleId, 'schedule:write');
    await schedules.requireToRun(caller, schedule);
    const times = listOccurrences(
      timingOf(schedule),
      new Date(since.getTime() - 1),
      until,
      MAX_BACKFILL + 1,
    );
    if (times.length === 0)
      throw invalidField(
        'body',
        '/until',
        'no_occurrences',
        'leaves no occurrence in the interval',
      );
    if (times.length > MAX_BACKFILL)
      throw invalidField(
        'body',
        '/until',
        'too_many',
        `leaves more than ${MAX_BACKFILL} occurrences in the interval`,
      );
    const purgedUntil = await readPurgedUntil(db, scheduleId);
    if (purgedUntil && times.every((dueAt) => dueAt <= purgedUntil))
      throw invalidField(
        'body',
        '/until',
        'purged',
        `must be after ${purgedUntil.toISOString()}: earlier runs are purged, their occurrences may have run`,
      );
    const request = {
      type: BACKFILL_JOB,
      payload: { scheduleId, since: since.toISOString(), until: until.toISOString() },
    };
    const tenantCaller = { ...caller, tenantId: schedule.tenantId };
    return commit(tenantCaller, (work) => {
      if (until > work.now)
        throw invalidField('body', '/until', 'future', 'must not be in the future');
      const job = jobFactory.create(work, jobTypes.get(BACKFILL_JOB), request, tenantCaller);
      work.result(job.id);
      work.audit('schedule.backfill', scheduleRecord.subject(schedule), {
        after: { jobId: job.id, since, until, occurrences: times.length },
      });
      return job;
    });
  },
});
