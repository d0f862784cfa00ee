import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Type } from 'typebox';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { WebhookWithDeliveries } from '../../../api/webhooks/schemas.ts';
import { jobWorkflowId } from '../../../domain/dispatch/workflowIds.ts';
import { defineJobType, JobFailure } from '../../../domain/jobs/jobType.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { attemptCalls, createHandRunner } from '../../support/runner.ts';
import { respondWith, startSink, type Sink } from '../../support/sink.ts';
import { admin, createUser } from '../../support/users.ts';

/** Long enough for a test to delete the workflow of a job that waits for its retry. */
const RETRY_SECONDS = 4;
const retry = { maxAttempts: 3, initialIntervalSeconds: RETRY_SECONDS, backoffCoefficient: 1 };

/** Fails in its first attempt. */
const failsOnce = defineJobType({
  name: 'test.fails-once',
  summary: 'Fails in its first attempt',
  payload: Type.Object({}),
  lane: 'activity',
  timeoutMs: 20_000,
  retry,
  run: (_payload, { attempt }) =>
    attempt === 1 ? Promise.reject(new JobFailure('busy', 'Later')) : Promise.resolve({ attempt }),
});

/** A short one, which fails in its first two attempts. */
const failsTwice = defineJobType({
  ...{ name: 'test.fails-twice', summary: 'Fails in two attempts', payload: Type.Object({}) },
  ...{ lane: 'inline', timeoutMs: 2_000, retry },
  run: (_payload, { attempt }) =>
    attempt < 3 ? Promise.reject(new JobFailure('busy', 'Later')) : Promise.resolve({ attempt }),
});

/** Works until it is stopped. */
const works = (name: string, more: object) =>
  defineJobType({
    ...{ name, summary: 'Works', payload: Type.Object({}), lane: 'activity', timeoutMs: 60_000 },
    ...more,
    run: (_payload, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error));
      }),
  });

let app: TestApp;
let sink: Sink;
beforeAll(async () => {
  const once = { retry: { maxAttempts: 1 }, isRepeatable: () => false };
  const extraJobTypes = [
    failsOnce,
    failsTwice,
    works('test.works', { retry }),
    works('test.works-once', once),
  ];
  [app, sink] = await Promise.all([startApp({}, { extraJobTypes }), startSink()]);
  await createUser(app, 'viewer');
});
afterAll(async () => {
  await app.stop();
  await sink.stop();
});

const create = async (type: string): Promise<string> =>
  (await admin(app).post<JobRecord>('/api/jobs', { type, payload: {} }).expect(201)).id;
const read = (id: string) => admin(app).get<JobRecord>(`/api/jobs/${id}`).expect(200);
const readUntil = (id: string, isReached: (job: JobRecord) => boolean) =>
  eventually(() => read(id), isReached);

/** As when Temporal has lost its data: the workflow of a job does not exist any more. */
async function loseWorkflow(id: string): Promise<void> {
  const state = () => app.deps.describeWorkflow(jobWorkflowId(id));
  await eventually(state, ({ found }) => found);
  const tasks = () => app.deps.db('outbox').where({ workflow_id: jobWorkflowId(id) });
  await eventually(tasks, ({ length }) => length === 0);
  await app.deps.temporal.call(20_000, ({ workflowService }) =>
    workflowService.deleteWorkflowExecution({
      namespace: 'default',
      workflowExecution: { workflowId: jobWorkflowId(id) },
    }),
  );
  await eventually(state, ({ found }) => !found);
}

async function reconcile(id: string): Promise<void> {
  await app.deps
    .db('jobs')
    .where({ id })
    .update({ checked_at: new Date(0) });
  await app.deps.reconcile.reconcileJobs(AbortSignal.timeout(20_000));
}

const restarts = async (id: string): Promise<number> =>
  (await app.deps.db('audit_entries').where({ subject_id: id, action: 'job.redispatch' })).length;

/** Loses the workflow of a job that waits, and checks that it gets one new one. */
async function continuesOnce(id: string): Promise<void> {
  const before = await restarts(id);
  await loseWorkflow(id);
  for (let round = 0; round < 3; round++) await reconcile(id);
  expect(await restarts(id)).toBe(before + 1);
  expect(await read(id)).toMatchObject({ status: 'running', error: { code: expect.anything() } });
}

test.each([1, 2])(
  'a delivery that waits after its attempt %i is sent again when it is due',
  async (made) => {
    const path = `/${made}`;
    sink.respond(path, respondWith(500));
    const tenant = app.client.as({ tenant: `attempt-${made}` });
    const { id } = await tenant
      .post<{ id: string }>('/api/webhooks', {
        endpointUrl: sink.url(path),
        eventTypes: ['job.created'],
        retryPolicy: { maxAttempts: 5, maxIntervalSeconds: RETRY_SECONDS },
      })
      .expect(201);
    await tenant.post('/api/jobs', { type: 'core.echo', payload: {} }).expect(201);
    const delivery = async () =>
      (await tenant.get<WebhookWithDeliveries>(`/api/webhooks/${id}`).expect(200)).deliveries[0];
    const pending = await eventually(delivery, (each) => each?.jobId != null);
    const jobId = assertDefined(pending?.jobId, 'the job of the delivery');
    const failed = `Attempt ${made} failed`;
    await readUntil(jobId, ({ logs }) => logs.some(({ message }) => message.startsWith(failed)));
    await continuesOnce(jobId);
    sink.respond(path, respondWith(204));
    await eventually(delivery, (each) => each?.status === 'succeeded');
    const times = sink.requestsTo(path).map(({ at }) => at);
    expect(times).toHaveLength(made + 1);
    const [before = NaN, after = NaN] = times.slice(-2);
    expect(after - before).toBeGreaterThan(RETRY_SECONDS * 1_000 - 100);
  },
);

test('a job of a module that waits for its retry continues', async () => {
  const id = await create('test.fails-once');
  await readUntil(id, ({ error }) => error?.code === 'busy');
  await continuesOnce(id);
  // The new workflow may be lost, too.
  await continuesOnce(id);
  const { attempts, logs } = await readUntil(id, ({ status }) => status === 'succeeded');
  expect(attempts).toBe(2);
  const timeOf = (text: string) =>
    Date.parse(
      assertDefined(
        logs.find(({ message }) => message.startsWith(text)),
        text,
      ).at,
    );
  const waitedMs = timeOf('Attempt 2 started') - timeOf('Attempt 1 failed');
  expect(waitedMs).toBeGreaterThan(RETRY_SECONDS * 1_000 - 100);
});

test.each([1, 2])('a short job that waits after its attempt %i continues', async (made) => {
  const id = await create('test.fails-twice');
  const failed = `Attempt ${made} failed`;
  await readUntil(id, ({ logs }) => logs.some(({ message }) => message.startsWith(failed)));
  await continuesOnce(id);
  expect(await readUntil(id, ({ status }) => status === 'succeeded')).toMatchObject({
    attempts: 3,
    result: { attempt: 3 },
  });
});

test('a short job that waits in its own run is cancelled without its workflow', async () => {
  const id = await create('test.fails-twice');
  await readUntil(id, ({ logs }) => logs.some(({ message }) => message.startsWith('Attempt 2 f')));
  await loseWorkflow(id);
  await admin(app).post(`/api/jobs/${id}/cancel`).expect(202);
  expect((await read(id)).status).toBe('cancelled');
});

test('a short job whose cancellation was requested during an attempt makes no other one', async () => {
  const id = await create('test.fails-twice');
  await readUntil(id, ({ logs }) => logs.some(({ message }) => message.startsWith('Attempt 2 f')));
  // As if Temporal had not been there since.
  await app.deps.db('jobs').where({ id }).update({ cancel_requested_at: new Date() });
  const { attempts } = await readUntil(id, ({ status }) => status === 'cancelled');
  expect(attempts).toBe(2);
});

test('a job whose cancellation was requested while it waited is cancelled', async () => {
  const id = await create('test.fails-once');
  await readUntil(id, ({ error }) => error?.code === 'busy');
  await loseWorkflow(id);
  await app.deps.db('jobs').where({ id }).update({ cancel_requested_at: new Date() });
  await reconcile(id);
  expect([(await read(id)).status, await restarts(id)]).toEqual(['cancelled', 0]);
});

test.each([
  ['test.works', 'workflow_lost'],
  ['test.works-once', 'outcome_unknown'],
])('an attempt of %s that may run ends with %s', async (type, code) => {
  const id = await create(type);
  await readUntil(id, ({ status }) => status === 'running');
  await loseWorkflow(id);
  await reconcile(id);
  expect([await read(id), await restarts(id)]).toMatchObject([
    { status: 'failed', error: { code } },
    0,
  ]);
});

test('a job of runners continues if its last attempt has ended', async () => {
  const hand = await createHandRunner(app, 'hand.waits', { retry });
  const startAttempt = async () => {
    const id = await create('hand.waits');
    await hand.granted(id);
    const { attemptToken } = await hand.begin(id, 'run-1').expect(200);
    return { id, ...attemptCalls(hand.client, id, attemptToken) };
  };
  const [waiting, running] = [await startAttempt(), await startAttempt()];
  await waiting.end({ failure: { code: 'busy', message: 'Later' } }).expect(200);
  await loseWorkflow(running.id);
  await reconcile(running.id);
  expect(await read(running.id)).toMatchObject({ error: { code: 'workflow_lost' } });
  await continuesOnce(waiting.id);
  expect(await hand.begin(waiting.id, 'run-2').expect(200)).toMatchObject({ code: 'retry_later' });
  const next = await eventually(
    () => hand.begin(waiting.id, 'run-2').expect(200),
    (answer) => 'attempt' in answer,
  );
  expect(next).toMatchObject({ attempt: 2 });
});
