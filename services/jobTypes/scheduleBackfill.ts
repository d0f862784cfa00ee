import { Type, type Static } from 'typebox';
import type { Knex } from '../../db/core/knex.ts';
import { Schedule } from '../../db/models/Schedule.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import { listDue } from '../../domain/schedules/occurrences.ts';
import { JobFailure, jobType, type JobType } from '../../domain/jobType.ts';
import { BACKFILL, MAX_BACKFILL, timingOf } from '../../domain/schedules/schedules.ts';
import { jobWorkflowId, type FireResult } from '../../temporal/contracts.ts';
import type { ScheduleFires } from '../scheduleFires.ts';

const time = Type.String({ format: 'date-time' });
const Payload = Type.Object(
  { scheduleId: Type.String(), since: time, until: time },
  { additionalProperties: false },
);
type Payload = Static<typeof Payload>;

export type BackfillDeps = { db: Knex; backfill: ScheduleFires['backfill'] };

/** Makes the jobs of times due that lie in the past, one after the other. Begun again, it goes on where it was. */
export const scheduleBackfill = ({ db, backfill }: BackfillDeps): JobType<Payload> =>
  jobType<Payload>({
    name: BACKFILL,
    summary: 'Makes the jobs of times due that a schedule has missed',
    payload: Payload,
    permission: 'schedule:write',
    onlyThrough: 'POST /api/schedules/{id}/backfill',
    lane: 'activity',
    timeoutMs: 600_000,
    run: async ({ scheduleId, since, until }, { jobId, signal, log, progress }) => {
      const schedule = await Schedule.query(db).findById(scheduleId).whereNull('deleted_at');
      if (!schedule)
        throw new JobFailure('schedule_deleted', 'The schedule was deleted', { retryable: false });
      const times = listDue(
        timingOf(schedule),
        new Date(Date.parse(since) - 1),
        new Date(until),
        MAX_BACKFILL,
      );
      const counts: Partial<Record<FireResult['outcome'], number>> = {};
      for (const [at, dueAt] of times.entries()) {
        signal.throwIfAborted();
        const { outcome } = await backfill(
          systemCaller(schedule.tenantId, jobWorkflowId(jobId)),
          scheduleId,
          dueAt,
        );
        counts[outcome] = (counts[outcome] ?? 0) + 1;
        progress((100 * (at + 1)) / times.length, dueAt.toISOString());
      }
      log('info', 'The range is done', counts);
      return { times: times.length, ...counts };
    },
  });
