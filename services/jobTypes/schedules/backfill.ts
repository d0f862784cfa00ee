import { Type, type Static } from 'typebox';
import type { Knex } from '../../../db/core/knex.ts';
import { Schedule } from '../../../db/models/Schedule.ts';
import { systemCaller } from '../../../domain/shared/caller.ts';
import { listOccurrences } from '../../../domain/schedules/occurrences.ts';
import { JobFailure, defineJobType, type JobType } from '../../../domain/jobs/jobType.ts';
import {
  BACKFILL_JOB,
  MAX_BACKFILL,
  timingOf,
  timingProblemOf,
} from '../../../domain/schedules/schedules.ts';
import { type ScheduleRunResult } from '../../../domain/dispatch/tasks.ts';
import { jobWorkflowId } from '../../../domain/dispatch/workflowIds.ts';
import type { ScheduleRunner } from '../../schedules/scheduleRunner.ts';
import type { Schedules } from '../../schedules/schedules.ts';

const time = Type.String({ format: 'date-time' });
const Payload = Type.Object(
  { scheduleId: Type.String(), since: time, until: time },
  { additionalProperties: false },
);
type Payload = Static<typeof Payload>;

export type BackfillDeps = {
  db: Knex;
  backfillOccurrence: ScheduleRunner['backfillOccurrence'];
  mayRunSchedule: Schedules['mayRun'];
};

/**
 * Runs past occurrences of a schedule, one after the other. A repeated attempt leaves out those
 * that have run, and those whose runs are purged. The result counts the outcomes.
 */
export const scheduleBackfill = ({
  db,
  backfillOccurrence,
  mayRunSchedule,
}: BackfillDeps): JobType<Payload> =>
  defineJobType<Payload>({
    name: BACKFILL_JOB,
    summary: 'Runs past occurrences of a schedule',
    payload: Payload,
    permission: 'schedule:write',
    createdOnlyBy: 'POST /api/schedules/{id}/backfill',
    lane: 'activity',
    timeoutMs: 600_000,
    run: async ({ scheduleId, since, until }, tools) => {
      const { jobId, signal, log, progress } = tools;
      const schedule = await Schedule.query(db).findById(scheduleId).whereNull('deleted_at');
      if (!schedule)
        throw new JobFailure('schedule_deleted', 'The schedule was deleted', { retryable: false });
      // The schedule may change while the job runs, which would run it as it is then.
      const authorize = async (current: Schedule) => {
        if (await mayRunSchedule(await tools.currentCaller(), current)) return;
        const message = `${tools.caller.actorId} may no longer run ${current.jobType} here`;
        throw new JobFailure('permission_lost', message, { retryable: false });
      };
      await authorize(schedule);
      const problem = timingProblemOf(schedule);
      if (problem !== null) throw new JobFailure('schedule_not_runnable', problem);
      const times = listOccurrences(
        timingOf(schedule),
        new Date(Date.parse(since) - 1),
        new Date(until),
        MAX_BACKFILL,
      );
      const counts: Partial<Record<ScheduleRunResult['outcome'], number>> = {};
      const caller = systemCaller(schedule.tenantId, jobWorkflowId(jobId));
      for (const [index, dueAt] of times.entries()) {
        signal.throwIfAborted();
        const { outcome } = await backfillOccurrence(caller, scheduleId, dueAt, authorize);
        counts[outcome] = (counts[outcome] ?? 0) + 1;
        progress((100 * (index + 1)) / times.length, dueAt.toISOString());
      }
      log('info', 'All occurrences of the interval are decided', counts);
      return { occurrences: times.length, ...counts };
    },
  });
