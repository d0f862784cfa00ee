import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Schedule } from '../../../db/models/Schedule.ts';
import type { JobTools } from '../../../domain/jobs/jobType.ts';
import { systemCaller, type Caller } from '../../../domain/shared/caller.ts';
import { scheduleBackfill } from '../../../services/jobTypes/schedules/backfill.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { createMinutelySchedule } from '../../support/schedules.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.stop());

it('a backfill ends when who asked for it loses the right', async () => {
  const { db } = app.deps;
  const { id: scheduleId } = await createMinutelySchedule(app.client);
  const schedule = await Schedule.query(db).findById(scheduleId).throwIfNotFound();
  const callerAs = (actorId: string): Caller => ({
    ...systemCaller(schedule.tenantId, 'backfill'),
    actorId,
  });
  let occurrences = 0;
  const backfill = scheduleBackfill({
    db,
    mayRunSchedule: ({ actorId }) => Promise.resolve(actorId === 'allowed'),
    backfillOccurrence: async (_caller, _id, _dueAt, authorize) => {
      await authorize(schedule);
      occurrences++;
      return { outcome: 'fired', runId: null, jobId: null } as never;
    },
  });
  if (!('run' in backfill)) throw new Error('The job type runs in a worker');
  const tools: Partial<JobTools> = {
    ...{ jobId: 'job_1', signal: new AbortController().signal },
    ...{ caller: callerAs('allowed'), log: () => undefined, progress: () => undefined },
    currentCaller: () => Promise.resolve(callerAs(occurrences < 2 ? 'allowed' : 'revoked')),
  };
  const interval = { since: '2026-01-01T00:00:00Z', until: '2026-01-01T00:09:00Z' };
  await expect(backfill.run({ scheduleId, ...interval }, tools as JobTools)).rejects.toMatchObject({
    code: 'permission_lost',
  });
  expect(occurrences).toBe(2);
});
