import type { Commit } from '../../db/core/commit.ts';
import { readDatabaseTime } from '../../db/core/databaseTime.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { Schedule } from '../../db/models/Schedule.ts';
import { findRunsAt, readPurgedUntil } from '../../db/schedules/runs.ts';
import type { JobData } from '../../domain/jobs/records.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { listOccurrences } from '../../domain/schedules/occurrences.ts';
import { invalidField } from '../../domain/shared/errors.ts';
import { backfillState, type BackfillState } from '../../domain/schedules/backfill.ts';
import {
  BACKFILL_JOB,
  MAX_BACKFILL,
  timingOf,
  type RunKind,
} from '../../domain/schedules/schedules.ts';
import type { JobFactory } from '../jobs/createJob.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import { requireTiming } from './fields.ts';
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

/** What a backfill of an interval would do. */
export type BackfillPreview = Record<BackfillState, number> & { occurrences: number };

type Interval = { since: Date; until: Date };

/**
 * The occurrences of an interval. Error: `invalid_request` for an interval that is not in the past, has
 * no occurrence or too many; `schedule_not_runnable`.
 */
async function occurrencesIn(
  db: Knex,
  schedule: Schedule,
  { since, until }: Interval,
): Promise<Date[]> {
  if (until > (await readDatabaseTime(db)))
    throw invalidField('body', '/until', 'future', 'must not be in the future');
  requireTiming(schedule);
  const times = listOccurrences(
    timingOf(schedule),
    new Date(since.getTime() - 1),
    until,
    MAX_BACKFILL + 1,
  );
  if (times.length === 0)
    throw invalidField('body', '/until', 'no_occurrences', 'leaves no occurrence in the interval');
  if (times.length > MAX_BACKFILL)
    throw invalidField(
      'body',
      '/until',
      'too_many',
      `leaves more than ${MAX_BACKFILL} occurrences in the interval`,
    );
  return times;
}

/** Starts jobs that run past occurrences of a schedule. */
export function createBackfills({ db, commit, schedules, jobTypes, jobFactory }: Deps) {
  /**
   * The runs of occurrences and of their backfills, and up to when runs are purged. Error: `invalid_request` if
   * all occurrences are purged.
   */
  async function readRuns(scheduleId: string, times: readonly Date[]) {
    const runs = await findRunsAt(db, scheduleId, times);
    const byTime = (kind: RunKind) =>
      new Map(runs.filter((run) => run.kind === kind).map((run) => [run.dueAt.getTime(), run]));
    const [scheduled, backfilled] = [byTime('scheduled'), byTime('backfill')];
    const purgedUntil = await readPurgedUntil(db, scheduleId);
    if (
      purgedUntil &&
      times.every((dueAt) => dueAt <= purgedUntil && !backfilled.has(dueAt.getTime()))
    )
      throw invalidField(
        'body',
        '/until',
        'purged',
        `must be after ${purgedUntil.toISOString()}: earlier runs are purged, their occurrences may have run`,
      );
    return { scheduled, backfilled, purgedUntil };
  }

  /** A schedule whose jobs the caller may run. Errors: `not_found`, `permission_denied`. */
  async function findToRun(caller: Caller, scheduleId: string): Promise<Schedule> {
    const schedule = await schedules.findToAct(caller, scheduleId, 'schedule:write');
    await schedules.requireToRun(caller, schedule);
    return schedule;
  }

  return {
    /** What a backfill of the interval would do now. Errors: those of `start`. */
    async preview(
      caller: Caller,
      scheduleId: string,
      interval: Interval,
    ): Promise<BackfillPreview> {
      const schedule = await findToRun(caller, scheduleId);
      const times = await occurrencesIn(db, schedule, interval);
      const { scheduled, backfilled, purgedUntil } = await readRuns(scheduleId, times);
      const counts = { toRun: 0, hasRun: 0, pending: 0, purged: 0, held: 0 };
      for (const dueAt of times)
        counts[
          backfillState(dueAt, {
            nextDueAt: schedule.nextDueAt,
            scheduled: scheduled.get(dueAt.getTime()),
            backfilled: backfilled.get(dueAt.getTime()),
            purgedUntil,
          })
        ] += 1;
      return { occurrences: times.length, ...counts };
    },

    /**
     * Starts a job that runs the occurrences from `since` to `until` (both inclusive) that have not
     * run. Errors: `not_found`, `permission_denied`, `invalid_request` for an interval that is not in
     * the past, has no occurrence or too many, or only such whose runs are purged.
     */
    async start(caller: Caller, scheduleId: string, interval: Interval): Promise<JobData> {
      const schedule = await findToRun(caller, scheduleId);
      const times = await occurrencesIn(db, schedule, interval);
      await readRuns(scheduleId, times);
      const { since, until } = interval;
      const tenantCaller = { ...caller, tenantId: schedule.tenantId };
      return commit(tenantCaller, (work) => {
        const job = jobFactory.create(work, {
          type: jobTypes.get(BACKFILL_JOB),
          payload: { scheduleId, since: since.toISOString(), until: until.toISOString() },
          caller: tenantCaller,
        });
        work.result(job.id);
        work.audit('schedule.backfill', scheduleRecord.subject(schedule), {
          after: { jobId: job.id, since, until, occurrences: times.length },
        });
        return job;
      });
    },
  };
}
