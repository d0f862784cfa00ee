import type { WorkflowHandle } from '@temporalio/client';
import type { TestApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import {
  backdateSchedule,
  createMinutelySchedule,
  jobIdOf,
  minutesFromNow,
  sleepingJob,
  triggerSchedule,
} from '../support/schedules.ts';
import { assertDefined } from '../../domain/shared/assert.ts';

/** A path through the workflows of schedules. `run` returns the id of the workflow. */
type ScheduleScenario = { name: string; run(app: TestApp): Promise<string> };

const client = (app: TestApp) => app.client.as({ tenant: 'recorder' });

/** Lets Temporal start the workflow of an occurrence, and returns the id of the workflow. */
async function startDueRun(
  app: TestApp,
  fields: object,
  before: (id: string) => Promise<unknown> = () => Promise.resolve(),
) {
  const { id } = await createMinutelySchedule(client(app), {
    catchupWindowSeconds: 600,
    ...fields,
  });
  const handle = await app.deps.temporal.call(20_000, (temporal) =>
    Promise.resolve(temporal.schedule.getHandle(`schedule:${id}`)),
  );
  await eventually(() => handle.describe().catch(() => null), Boolean);
  const dueAt = minutesFromNow()(-2);
  await backdateSchedule(app, id, dueAt);
  await before(id);
  await handle.backfill({
    start: new Date(dueAt.getTime() - 1),
    end: dueAt,
    overlap: 'ALLOW_ALL',
  });
  const { info } = await eventually(
    () => handle.describe(),
    (found) => found.info.recentActions.length > 0,
  );
  await client(app).post(`/api/schedules/${id}/pause`, {});
  return assertDefined(info.recentActions[0], 'recent action').action.workflow.workflowId;
}

const trigger = (app: TestApp, id: string) => triggerSchedule(client(app), id);

/** A schedule with a buffered run, and the running job that the run waits for. */
async function createBufferedRun(app: TestApp) {
  const { id } = await createMinutelySchedule(client(app), {
    ...sleepingJob,
    overlapPolicy: 'bufferOne',
  });
  const jobId = jobIdOf(await trigger(app, id));
  await trigger(app, id);
  return { id, jobId };
}

export const SCHEDULES: readonly ScheduleScenario[] = [
  { name: 'fireSchedule.fired', run: (app) => startDueRun(app, {}) },
  {
    name: 'fireSchedule.overlap',
    run: (app) => startDueRun(app, sleepingJob, (id) => trigger(app, id)),
  },
  {
    name: 'fireSchedule.buffered',
    run: (app) =>
      startDueRun(app, { ...sleepingJob, overlapPolicy: 'bufferOne' }, (id) => trigger(app, id)),
  },
  {
    name: 'fireSchedule.database-away',
    run: async (app) => {
      const workflowId = await startDueRun(
        app,
        {},
        async () => void (await app.deps.db.raw('ALTER TABLE schedule_runs RENAME TO away')),
      );
      await app.deps.db.raw('SELECT pg_sleep(9)');
      await app.deps.db.raw('ALTER TABLE away RENAME TO schedule_runs');
      return workflowId;
    },
  },
  {
    name: 'fireSchedule.not-scheduled',
    run: async (app) => {
      const workflowId = `not-scheduled:${app.deps.ids.next('sch')}`;
      const { taskQueue } = app.deps.config;
      await app.deps.temporal.call(20_000, (temporal) =>
        temporal.workflow.start('fireSchedule', {
          workflowId,
          taskQueue,
          args: [{ scheduleId: 'none' }],
        }),
      );
      return workflowId;
    },
  },
  {
    name: 'releaseBufferedRun.fired',
    run: async (app) => {
      const { id, jobId } = await createBufferedRun(app);
      await client(app).post(`/api/jobs/${jobId}/cancel`);
      await eventually(
        () => app.deps.db('schedule_runs').where({ schedule_id: id, outcome: 'buffered' }),
        (rows) => rows.length === 0,
      );
      return `schedule:${id}:after:${jobId}`;
    },
  },
];

/** Runs a scenario to its end and returns the handle of its workflow. */
export async function runScheduleScenario(
  app: TestApp,
  { run }: ScheduleScenario,
): Promise<WorkflowHandle> {
  const workflowId = await run(app);
  const handle = await app.deps.temporal.call(20_000, (temporal) =>
    Promise.resolve(temporal.workflow.getHandle(workflowId)),
  );
  await handle.result().catch(() => undefined);
  return handle;
}
