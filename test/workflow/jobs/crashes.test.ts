import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { replaceableWorker } from '../../support/replaceableWorker.ts';
import { startSink, type Sink } from '../../support/sink.ts';

/** The API runs in this process, the worker in a process that the tests kill and replace. */
let api: TestApp;
const worker = replaceableWorker(() => ({ ...api.env, HOLDFAST_ROLE: 'worker' }));
beforeAll(async () => {
  api = await startApp({ HOLDFAST_ROLE: 'api' });
});
afterAll(async () => {
  await worker.stop();
  await api.stop();
});

const sleepJob = (durationMs: number, maxAttempts = 3) =>
  api.client
    .post<JobRecord>('/api/jobs', {
      type: 'core.sleep',
      payload: { durationMs },
      retryPolicy: { maxAttempts, initialIntervalSeconds: 0.1 },
    })
    .expect(201);
const read = (id: string) => api.client.get<JobRecord>(`/api/jobs/${id}`).expect(200);
const untilStatus = (id: string, status: string) =>
  eventually(
    () => read(id),
    (job) => job.status === status,
    { withinMs: 45_000 },
  );

/** A job that posts to an endpoint which does not answer; the endpoint has the request. */
async function createHangingPost(sink: Sink, endpoint: string): Promise<JobRecord> {
  sink.respond(endpoint, () => undefined);
  const payload = { url: sink.url(endpoint), method: 'POST', timeoutMs: 60_000 };
  const job = await api.client
    .post<JobRecord>('/api/jobs', { type: 'http.request', payload })
    .expect(201);
  await eventually(
    () => sink.requestsTo(endpoint),
    (all) => all.length > 0,
  );
  return job;
}

async function expectOutcomeUnknown(job: JobRecord, sink: Sink, endpoint: string): Promise<void> {
  const done = await untilStatus(job.id, 'failed');
  expect(done).toMatchObject({
    attempts: 1,
    error: { code: 'outcome_unknown', message: expect.stringContaining('unknown') },
  });
  expect(sink.requestsTo(endpoint)).toHaveLength(1);
}

describe('when a worker is killed and another one starts', () => {
  let sink: Sink;
  let repeated: JobRecord;
  let single: JobRecord;
  let posted: JobRecord;
  let cancelled: JobRecord;
  beforeAll(async () => {
    sink = await startSink();
    await worker.start();
    posted = await createHangingPost(sink, '/killed');
    [repeated, single] = await Promise.all([sleepJob(3_000), sleepJob(3_000, 1)]);
    for (const { id } of [repeated, single]) await untilStatus(id, 'running');
    await worker.kill();
    const body = { type: 'core.echo', payload: {} };
    const queued = await api.client.post<JobRecord>('/api/jobs', body).expect(201);
    cancelled = await api.client.post<JobRecord>(`/api/jobs/${queued.id}/cancel`).expect(202);
    await worker.start();
  });
  afterAll(() => sink.stop());

  test('it makes the next attempt of a job', async () => {
    const done = await untilStatus(repeated.id, 'succeeded');
    expect(done).toMatchObject({ attempts: 2, retryCount: 1 });
    const starts = done.logs.filter(({ message }) => message.includes('started'));
    expect(starts.map(({ attempt }) => attempt)).toEqual([1, 2]);
    const ends = await api.deps
      .db('events')
      .where({ subject_id: repeated.id, type: 'job.succeeded' });
    expect(ends).toHaveLength(1);
  });

  test('a job that may have one attempt only fails', async () => {
    const done = await untilStatus(single.id, 'failed');
    expect(done).toMatchObject({ attempts: 1, error: { code: 'worker_lost' } });
  });

  test('a POST is not sent again: the job says that the outcome is unknown', () =>
    expectOutcomeUnknown(posted, sink, '/killed'));

  test('a job that was cancelled without a worker never runs', async () => {
    expect(cancelled).toMatchObject({ status: 'cancelled', attempts: 0 });
    const state = await eventually(
      () => api.deps.describeWorkflow(cancelled.workflowId),
      (s) => s.found && s.status !== 'running',
    );
    expect(state.found && ['cancelled', 'completed']).toContain(state.found && state.status);
    expect(await read(cancelled.id)).toMatchObject({
      status: 'cancelled',
      attempts: 0,
      startedAt: null,
    });
  });
});

test('a worker that is asked to stop exits cleanly, and another worker repeats what can be repeated', async () => {
  const sink = await startSink();
  try {
    await worker.start();
    const posted = await createHangingPost(sink, '/stopped');
    const job = await sleepJob(8_000);
    await untilStatus(job.id, 'running');
    expect(await worker.terminate()).toBe(0);
    expect(await read(job.id)).toMatchObject({ status: 'running', error: { code: 'interrupted' } });
    await worker.start();
    await expectOutcomeUnknown(posted, sink, '/stopped');
    const done = await untilStatus(job.id, 'succeeded');
    expect(done.attempts).toBe(2);
  } finally {
    await sink.stop();
  }
});
