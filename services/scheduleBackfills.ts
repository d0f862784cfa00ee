import type { Commit } from '../db/commit.ts';
import type { Job } from '../db/models/Job.ts';
import type { Caller } from '../domain/shared/caller.ts';
import { listDue } from '../domain/schedules/occurrences.ts';
import { invalidField } from '../domain/shared/errors.ts';
import { BACKFILL, MAX_BACKFILL, timingOf } from '../domain/schedules/schedules.ts';
import type { DispatchTask } from '../temporal/contracts.ts';
import type { JobStarts } from './jobStarts.ts';
import type { JobTypes } from './jobTypes/registry.ts';
import type { Schedules } from './schedules.ts';
import { scheduleSubject } from './scheduleTrail.ts';

export type ScheduleBackfills = ReturnType<typeof createScheduleBackfills>;

type Deps = {
  commit: Commit<DispatchTask>;
  schedules: Schedules;
  jobTypes: JobTypes;
  starts: JobStarts;
};

/** Making up for times due that lie in the past. */
export const createScheduleBackfills = ({ commit, schedules, jobTypes, starts }: Deps) => ({
  /**
   * Starts a job that makes the jobs of times due from `since` up to and including `until` which have not fired. Errors:
   * `not_found`, `permission_denied`, `invalid_request` for a range that is not in the past, holds none or too many.
   */
  async begin(
    caller: Caller,
    scheduleId: string,
    { since, until }: { since: Date; until: Date },
  ): Promise<Job> {
    const schedule = await schedules.findToAct(caller, scheduleId, 'schedule:write');
    const times = listDue(
      timingOf(schedule),
      new Date(since.getTime() - 1),
      until,
      MAX_BACKFILL + 1,
    );
    if (times.length === 0)
      throw invalidField('body', '/until', 'no_times', 'leaves no time due in the range');
    if (times.length > MAX_BACKFILL)
      throw invalidField(
        'body',
        '/until',
        'too_many',
        `leaves more than ${MAX_BACKFILL} times due in the range`,
      );
    const request = {
      type: BACKFILL,
      payload: { scheduleId, since: since.toISOString(), until: until.toISOString() },
    };
    const at = { ...caller, tenantId: schedule.tenantId };
    return commit(at, (work) => {
      if (until > work.now)
        throw invalidField('body', '/until', 'future', 'must not be in the future');
      const job = starts.add(work, jobTypes.get(BACKFILL), request, at);
      work.audit('schedule.backfill', scheduleSubject(schedule), {
        after: { jobId: job.id, since, until, times: times.length },
      });
      return job;
    });
  },
});
