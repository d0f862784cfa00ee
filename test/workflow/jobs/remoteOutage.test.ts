import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { JobWorkflowInput } from '../../../domain/dispatch/tasks.ts';
import { jobWorkflowId } from '../../../domain/dispatch/workflowIds.ts';
import { createLog } from '../../../platform/log.ts';
import { readRunnerConfig } from '../../../runner/config.ts';
import { startRunner, type Runner } from '../../../runner/process.ts';
import { createTemporalConnection, type TemporalConnection } from '../../../temporal/connection.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { startForwarder, type Forwarder } from '../../support/forwarder.ts';
import { createRunnerSecret } from '../../support/runner.ts';
import { admin, createUser } from '../../support/users.ts';

const POOL = 'outage';
const TYPE = 'outage.long';

let app: TestApp;
let folder: string;
/** Between the runner and Temporal. */
let forwarder: Forwarder;
let temporal: TemporalConnection;
let runner: Runner;

beforeAll(async () => {
  app = await startApp();
  folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-outage-'));
  await createUser(app, 'viewer');
  const token = await createRunnerSecret(app, POOL);
  await admin(app)
    .put(`/api/pools/${POOL}`, { acceptTypes: ['outage.*'], tenantSharePercent: 100 })
    .expect(200);
  await writeFile(
    path.join(folder, 'long.yaml'),
    JSON.stringify({
      apiVersion: 'holdfast/v1',
      ...{ name: TYPE, summary: 'Runs until it may end', pool: POOL, access: 'open' },
      payload: { type: 'object' },
      lostAfterSeconds: 5,
      retry: { maxAttempts: 3, initialIntervalSeconds: 0.1, backoffCoefficient: 1 },
      run: { argv: ['bash', '-c', `echo ready; until [ -e ${folder}/go ]; do sleep 0.1; done`] },
    }),
  );
  forwarder = await startForwarder(new URL(`tcp://${app.env.TEMPORAL_ADDRESS}`));
  const config = readRunnerConfig({
    HOLDFAST_URL: app.client.base,
    HOLDFAST_RUNNER_TOKEN: token,
    HOLDFAST_RUNNER_POOL: POOL,
    HOLDFAST_RUNNER_TYPES: folder,
    HOLDFAST_RUNNER_FOLDER: path.join(folder, 'work'),
    HOLDFAST_STOP_GRACE_MS: '0',
    TEMPORAL_ADDRESS: forwarder.address,
  });
  temporal = createTemporalConnection(config.temporal);
  runner = await startRunner({ config, temporal, log: createLog('silent', false) });
  await eventually(
    () => runner.isRunning(),
    (is) => is,
  );
});
afterAll(async () => {
  await runner.stop();
  await temporal.close();
  await forwarder.close();
  await app.stop();
  await rm(folder, { recursive: true, force: true });
});

/** The activity of a job as Temporal knows it. */
async function pendingActivity(id: string) {
  const run = await app.deps.temporal.call(20_000, ({ workflow }) =>
    workflow.getHandle(jobWorkflowId(id)).describe(),
  );
  return run.raw.pendingActivities?.[0];
}

test('a command outlives an outage of Temporal that is longer than its heartbeat timeout', async () => {
  const { id } = await admin(app)
    .post<JobRecord>('/api/jobs', { type: TYPE, payload: {} })
    .expect(201);
  const read = () => admin(app).get<JobRecord>(`/api/jobs/${id}`).expect(200);
  await eventually(read, ({ logs }) => logs.some(({ message }) => message === 'ready'));
  await forwarder.close();
  await eventually(
    () => pendingActivity(id),
    (activity) => (activity?.attempt ?? 0) > 1,
  );
  await forwarder.open();
  // The next activity learns from the API that the attempt runs; the first one that Temporal has dropped it.
  await eventually(
    () => pendingActivity(id),
    (activity) => activity?.lastFailure?.applicationFailureInfo?.type === 'leased',
    { withinMs: 40_000 },
  );
  await writeFile(path.join(folder, 'go'), '');
  const ended = await eventually(read, ({ status }) => status === 'succeeded', {
    withinMs: 30_000,
  });
  expect(ended).toMatchObject({ attempts: 1, interruptions: 0 });
  await eventually(
    () =>
      app.deps.temporal.call(20_000, ({ workflow }) =>
        workflow.getHandle(jobWorkflowId(id)).describe(),
      ),
    (run) => run.status.name === 'COMPLETED',
    { withinMs: 30_000 },
  );
});

test('the workflow of a job that PostgreSQL has lost ends', async () => {
  const jobId = app.deps.ids.next('job');
  const remote = { pool: POOL, type: TYPE };
  const limits = { timeoutMs: 60_000, heartbeatMs: 5_000 };
  const input: JobWorkflowInput = { jobId, lane: 'remote', remote, ...limits };
  await app.deps.temporal.call(20_000, async ({ workflow }) => {
    const { taskQueue } = app.deps.config;
    const workflowId = jobWorkflowId(jobId);
    const run = await workflow.start('job', { taskQueue, workflowId, args: [input] });
    await run.result();
  });
});
