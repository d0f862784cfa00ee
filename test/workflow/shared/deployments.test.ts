import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Type } from 'typebox';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { ApprovalRecord } from '../../../api/approvals/schemas.ts';
import { systemScheduleId } from '../../../domain/dispatch/workflowIds.ts';
import { defineJobType } from '../../../domain/jobs/jobType.ts';
import { makeCurrent, readDeployedVersions } from '../../../temporal/deployment.ts';
import { startApp, startAppOn, type TestApp } from '../../support/app.ts';
import { approve, createRequest } from '../../support/approvals.ts';
import { eventually } from '../../support/eventually.ts';

/** A type whose result says which version of the workers has run it. */
const whoType = (version: string) =>
  defineJobType({
    name: 'test.who',
    summary: 'Says who has run it',
    payload: Type.Object({}),
    lane: 'activity',
    timeoutMs: 5_000,
    run: () => Promise.resolve({ version }),
  });

let first: TestApp;
let second: TestApp;
let api: TestApp;
let isFirstStopped = false;
const options = (version: string) => ({ extraJobTypes: [whoType(version)] });
beforeAll(async () => {
  first = await startApp({ HOLDFAST_BUILD_ID: 'one' }, options('one'));
  const { HOLDFAST_TASK_QUEUE = '' } = first.env;
  const shared = { HOLDFAST_TASK_QUEUE, HOLDFAST_DISPATCH_GRACE_MS: '200' };
  api = await startAppOn(first.databaseUrl, { ...shared, HOLDFAST_ROLE: 'api' }, options('none'));
  await eventually(versions, (all) => all.some(({ isCurrent }) => isCurrent));
  second = await startAppOn(
    first.databaseUrl,
    { ...shared, HOLDFAST_ROLE: 'worker', HOLDFAST_BUILD_ID: 'two' },
    options('two'),
  );
});
afterAll(async () => {
  await second.stop();
  await api.stop();
  if (!isFirstStopped) await first.deps.stopWorkers();
  await first.stop();
});

const versions = () => readDeployedVersions(first.deps.temporal, first.deps.config.deploymentName);
/** The workers whose slots and job types count. */
const workerCount = async () => (await first.deps.db('workers')).length;
const whoRuns = async () => {
  const body = { type: 'test.who', payload: {} };
  const done = await api.client
    .post<JobRecord>('/api/jobs', body, { prefer: 'wait=20' })
    .expect(201);
  return (done.result as { version: string } | null)?.version;
};

test('only workers of the current version get work, which a command changes', async () => {
  await eventually(versions, (all) => all.length === 2);
  expect(await whoRuns()).toBe('one');
  // A workflow that waits has started with the first version.
  const request = await createRequest(api.client, { jobType: 'test.who', jobPayload: {} });
  await eventually(
    () => first.deps.describeWorkflow(`approval:${request.id}`),
    ({ found }) => found,
  );

  await eventually(workerCount, (count) => count === 1);
  expect([first, second].map(({ deps }) => deps.firstAttempts.accepts())).toEqual([true, false]);

  const { deploymentName: name } = first.deps.config;
  await makeCurrent(first.deps.temporal, { name, buildId: 'two' });
  await eventually(whoRuns, (who) => who === 'two');
  await eventually(
    () => [first, second].map(({ deps }) => deps.firstAttempts.accepts()),
    ([former, current]) => former === false && current === true,
  );
  await eventually(workerCount, (count) => count === 1);
  const state = Object.fromEntries(
    (await versions()).map(({ buildId, state }) => [buildId, state]),
  );
  expect(state).toEqual({ one: expect.stringMatching(/^drain/), two: 'current' });

  // It goes on with the second one, when no worker of the first is left.
  await first.deps.stopWorkers();
  isFirstStopped = true;
  await approve(api.client.as({ actor: 'bob', roles: 'approver' }), request.id).expect(200);
  const closed = await eventually(
    () => api.client.get<ApprovalRecord>(`/api/workflows/${request.id}`).expect(200),
    ({ execution }) => execution === 'succeeded' || execution === 'failed',
  );
  const job = await api.client.get<JobRecord>(`/api/jobs/${closed.jobId}`).expect(200);
  expect(job).toMatchObject({ status: 'succeeded', result: { version: 'two' } });

  // So do the runs that Temporal Schedules start.
  const scheduleId = systemScheduleId(first.deps.config.taskQueue, 'reconcile');
  await first.deps.temporal.call(20_000, (client) =>
    client.schedule.getHandle(scheduleId).trigger(),
  );
  await eventually(
    () =>
      first.deps.temporal.call(20_000, async (client) => {
        const { info } = await client.schedule.getHandle(scheduleId).describe();
        return info.runningActions.length === 0 && info.recentActions.length > 0;
      }),
    (isDone) => isDone,
  );
});
