import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { freePort } from '../../../dev/freePort.ts';
import { startApp, testEnv, type TestApp } from '../../support/app.ts';
import { createClient } from '../../support/client.ts';
import { createDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { killAll, startProcess } from '../../support/processes.ts';

/** The API in this process, workers in processes of their own that can be killed. */
let api: TestApp;
beforeAll(async () => {
  api = await startApp({ HOLDFAST_ROLE: 'api' });
});
afterEach(killAll);
afterAll(() => api.stop());

const startWorker = () => startProcess({ ...api.env, HOLDFAST_ROLE: 'worker' });
const sleepJob = async (durationMs: number, maxAttempts = 3) =>
  (
    await api.client.post('/api/jobs', {
      type: 'core.sleep',
      payload: { durationMs },
      retryPolicy: { maxAttempts, initialIntervalSeconds: 0.1 },
    })
  ).body;
const read = async (id: string) => (await api.client.get(`/api/jobs/${id}`)).body;
const untilStatus = (id: string, status: string) =>
  eventually(
    () => read(id),
    (job) => job.status === status,
    { withinMs: 45_000 },
  );

test('killed between commit and start: the next process starts the job, once', async () => {
  const database = await createDatabase();
  const env = testEnv(database.url);
  const cut = await startProcess({
    ...env,
    HOLDFAST_ROLE: 'api',
    TEMPORAL_ADDRESS: `127.0.0.1:${await freePort(0)}`,
  });
  const client = createClient(cut.base);
  const made = await client.post('/api/jobs', { type: 'core.echo', payload: { kept: true } });
  expect(made.status).toBe(201);
  await cut.kill();

  const next = await startProcess(env);
  const done = await createClient(next.base).get(`/api/jobs/${made.body.id}`, {
    prefer: 'wait=40',
  });
  expect(done.body).toMatchObject({ status: 'succeeded', attempts: 1, result: { kept: true } });
  expect(await next.terminate()).toBe(0);
  await database.drop();
});

test('killed in the middle of an attempt: another worker takes the job up', async () => {
  const worker = await startWorker();
  const job = await sleepJob(3_000);
  await untilStatus(job.id, 'running');
  await worker.kill();
  const other = await startWorker();
  const done = await untilStatus(job.id, 'succeeded');
  expect(done).toMatchObject({ attempts: 2, retryCount: 1 });
  expect(
    done.logs.filter((l: any) => /started/.test(l.message)).map((l: any) => l.attempt),
  ).toEqual([1, 2]);
  const ends = await api.deps.db('events').where({ subject_id: job.id, type: 'job.succeeded' });
  expect(ends).toHaveLength(1);
  await other.terminate();
});

test('killed in the only attempt that the policy allows: the job fails and is not run again', async () => {
  const worker = await startWorker();
  const job = await sleepJob(3_000, 1);
  await untilStatus(job.id, 'running');
  await worker.kill();
  const other = await startWorker();
  const done = await untilStatus(job.id, 'failed');
  expect(done).toMatchObject({ attempts: 1, error: { code: 'worker_lost' } });
  await other.terminate();
});

test('a worker told to stop ends cleanly and hands the attempt on', async () => {
  const worker = await startWorker();
  const job = await sleepJob(8_000);
  await untilStatus(job.id, 'running');
  expect(await worker.terminate()).toBe(0);
  expect(await read(job.id)).toMatchObject({ status: 'running', error: { code: 'interrupted' } });
  const other = await startWorker();
  const done = await untilStatus(job.id, 'succeeded');
  expect(done.attempts).toBe(2);
  await other.terminate();
});

test('a job cancelled while no worker is there is cancelled when one comes, without being run', async () => {
  const job = await sleepJob(1_000);
  const cancelled = await api.client.post(`/api/jobs/${job.id}/cancel`);
  expect(cancelled.body).toMatchObject({ status: 'cancelled', attempts: 0 });
  const worker = await startWorker();
  const state = await eventually(
    () => api.deps.inspect(job.workflowId),
    (s) => s.found && s.status !== 'running',
  );
  expect(state.found && ['cancelled', 'completed']).toContain(state.found && state.status);
  expect(await read(job.id)).toMatchObject({ status: 'cancelled', attempts: 0, startedAt: null });
  await worker.terminate();
});
