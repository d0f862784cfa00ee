import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { ScheduleHandle } from '@temporalio/client';
import { systemScheduleId } from '../../../domain/dispatch/workflowIds.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_RECONCILE_SECONDS: '1' });
});
afterAll(() => app.stop());

const withSchedule = <T>(call: (handle: ScheduleHandle) => Promise<T>): Promise<T> =>
  app.deps.temporal.call(20_000, ({ schedule }) =>
    call(schedule.getHandle(systemScheduleId(app.env.HOLDFAST_TASK_QUEUE ?? '', 'reconcile'))),
  );
const describeSchedule = () => withSchedule((handle) => handle.describe()).catch(() => null);
const untilRestored = () =>
  eventually(describeSchedule, (found) => found !== null && !found.state.paused, {
    withinMs: 30_000,
  });

test('the schedule of a reconciler that was paused or deleted comes back while workers run', async () => {
  await untilRestored();
  await withSchedule((handle) => handle.pause('by an operator'));
  await untilRestored();
  await withSchedule((handle) => handle.delete());
  const restored = await untilRestored();
  expect(restored).toMatchObject({ action: { workflowExecutionTimeout: 3_600_000 } });
});
