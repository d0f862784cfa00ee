import { afterAll, beforeAll, test } from '@jest/globals';
import { systemScheduleId } from '../../../domain/dispatch/workflowIds.ts';
import { createLog } from '../../../platform/log.ts';
import type { TemporalConnection } from '../../../temporal/connection.ts';
import { createWorkers } from '../../../temporal/worker.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' });
});
afterAll(() => app.stop());

test('workers start while the scheduler of Temporal does not answer, and prepare it when it does', async () => {
  const { temporal, config, activities } = app.deps;
  let answers = false;
  const withoutScheduler: TemporalConnection = {
    ...temporal,
    call: (deadlineMs, calls) =>
      answers ? temporal.call(deadlineMs, calls) : Promise.reject(new Error('no answer')),
  };
  const log = createLog('silent', false);
  const workers = createWorkers({ ...config, temporal: withoutScheduler, log, activities });
  workers.start();
  try {
    await eventually(
      () => workers.isRunning(),
      (is) => is,
    );
    answers = true;
    await eventually(
      () =>
        temporal.call(20_000, ({ schedule }) =>
          schedule
            .getHandle(systemScheduleId(config.taskQueue, 'reconcile'))
            .describe()
            .catch(() => null),
        ),
      (found) => found !== null,
      { withinMs: 30_000 },
    );
  } finally {
    await workers.stop();
  }
});
