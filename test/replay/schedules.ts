import type { WorkflowHandle } from '@temporalio/client';
import type { TestApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { everyMinute, minute, neglect } from '../support/schedules.ts';

/** One branch of what a schedule starts. `run` returns the id of the workflow. */
type Branch = { name: string; run(app: TestApp): Promise<string> };

const client = (app: TestApp) => app.client.as({ tenant: 'recorder' });
const sleeping = { jobType: 'core.sleep', payload: { durationMs: 60_000 } };

/** A schedule with a time due that Temporal has started a run for; returns both ids. */
async function due(
  app: TestApp,
  more: object,
  before: (id: string) => Promise<unknown> = () => Promise.resolve(),
) {
  const { id } = await everyMinute(client(app), { catchupWindowSeconds: 600, ...more });
  const handle = await app.deps.link.call(5_000, (temporal) =>
    Promise.resolve(temporal.schedule.getHandle(`schedule:${id}`)),
  );
  await eventually(() => handle.describe().catch(() => null), Boolean);
  await neglect(app, id, minute(-2));
  await before(id);
  await handle.backfill({
    start: new Date(minute(-2).getTime() - 1),
    end: minute(-2),
    overlap: 'ALLOW_ALL',
  });
  const { info } = await eventually(
    () => handle.describe(),
    (found) => found.info.recentActions.length > 0,
  );
  await client(app).post(`/api/schedules/${id}/pause`, {});
  return { id, workflowId: info.recentActions[0]?.action.workflow.workflowId ?? '' };
}

const fired = async (app: TestApp, more: object, before?: (id: string) => Promise<unknown>) =>
  (await due(app, more, before)).workflowId;

const trigger = async (app: TestApp, id: string): Promise<string> =>
  (await client(app).post(`/api/schedules/${id}/trigger`)).body.jobId;

/** A run that is buffered while a job of its schedule runs, and that job's id. */
async function buffered(app: TestApp) {
  const { id } = await everyMinute(client(app), { ...sleeping, overlapPolicy: 'bufferOne' });
  const jobId = await trigger(app, id);
  await trigger(app, id);
  return { id, jobId };
}

export const SCHEDULES: readonly Branch[] = [
  { name: 'fireSchedule.fired', run: (app) => fired(app, {}) },
  { name: 'fireSchedule.overlap', run: (app) => fired(app, sleeping, (id) => trigger(app, id)) },
  {
    name: 'fireSchedule.buffered',
    run: (app) => fired(app, { ...sleeping, overlapPolicy: 'bufferOne' }, (id) => trigger(app, id)),
  },
  {
    name: 'fireSchedule.database-away',
    run: async (app) => {
      const workflowId = await fired(
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
      await app.deps.link.call(5_000, (temporal) =>
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
    name: 'releaseSchedule.fired',
    run: async (app) => {
      const { id, jobId } = await buffered(app);
      await client(app).post(`/api/jobs/${jobId}/cancel`);
      await eventually(
        () => app.deps.db('schedule_runs').where({ schedule_id: id, outcome: 'buffered' }),
        (rows) => rows.length === 0,
      );
      return `schedule:${id}:after:${jobId}`;
    },
  },
];

/** Runs a branch to its end and returns the handle of its workflow. */
export async function playSchedule(app: TestApp, { run }: Branch): Promise<WorkflowHandle> {
  const workflowId = await run(app);
  const handle = await app.deps.link.call(5_000, (temporal) =>
    Promise.resolve(temporal.workflow.getHandle(workflowId)),
  );
  await handle.result().catch(() => undefined);
  return handle;
}
