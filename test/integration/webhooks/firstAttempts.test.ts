import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JobRecord, LogRecord } from '../../../api/jobs/schemas.ts';
import type { WebhookRecord, WebhookWithDeliveries } from '../../../api/webhooks/schemas.ts';
import { createNotifications } from '../../../db/core/notifications.ts';
import { tryLockUntilCommit } from '../../../db/core/advisoryLocks.ts';
import {
  extendLeases,
  recordFirstAttempts,
  writeFirstAttempts,
} from '../../../db/webhooks/firstAttempts.ts';
import { JobFailure } from '../../../domain/jobs/jobType.ts';
import { ENDPOINT_REMOVED } from '../../../domain/webhooks/webhooks.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { jobLogTopic } from '../../../services/jobs/jobAudit.ts';
import {
  createFirstAttemptRecorder,
  type EndedAttempt,
} from '../../../services/webhooks/firstAttemptRecorder.ts';
import type { FirstAttempt } from '../../../services/webhooks/sendEvent.ts';
import { noResponse } from '../../../services/webhooks/sender.ts';
import { startApp, startAppOn, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { publishWithDeliveries } from '../../support/publishEvents.ts';
import { startSink, type Sink } from '../../support/sink.ts';

const HEARTBEAT = { HOLDFAST_HEARTBEAT_MS: '15000', HOLDFAST_STOP_GRACE_MS: '100' };

/** Serves requests only: processes that the tests start and stop do the background work. */
let app: TestApp;
let sink: Sink;
let worker: TestApp | undefined;
beforeAll(async () => {
  [app, sink] = await Promise.all([startApp(HEARTBEAT, { idle: true }), startSink()]);
});
afterAll(async () => {
  await worker?.stop();
  await app.stop();
  await sink.stop();
});

const startWorker = async (): Promise<TestApp> =>
  (worker ??= await startAppOn(app.databaseUrl, app.env));
async function stopWorker(): Promise<void> {
  await worker?.stop();
  worker = undefined;
}

let tenants = 0;
/** A webhook of a tenant that no other test uses, with what a test does with it. */
async function register(path: string, more: object = {}) {
  const client = app.client.as({ tenant: `first${tenants++}` });
  const { id } = await client
    .post<WebhookRecord>('/api/webhooks', {
      endpointUrl: sink.url(path),
      eventTypes: ['job.created'],
      ...more,
    })
    .expect(201);
  const readDeliveries = async () =>
    (await client.get<WebhookWithDeliveries>(`/api/webhooks/${id}`).expect(200)).deliveries;
  return {
    id,
    client,
    emit: () => client.post('/api/jobs', { type: 'core.echo', payload: {} }).expect(201),
    readDeliveries,
    /** Waits until the newest delivery has this status. */
    newest: (status: string) =>
      eventually(
        async () => (await readDeliveries())[0],
        (delivery) => delivery?.status === status,
      ).then((delivery) => assertDefined(delivery, 'the delivery')),
    /** The job of a delivery, and the messages of its log. */
    async readJob(jobId: string | null) {
      const job = await client.get<JobRecord>(`/api/jobs/${jobId}`).expect(200);
      const { items } = await client
        .get<{ items: LogRecord[] }>(`/api/jobs/${jobId}/logs`)
        .expect(200);
      return { job, messages: items.map(({ line, message }) => [line, message]) };
    },
  };
}

const hasWorkflow = async (jobId: string | null): Promise<boolean> =>
  (await app.deps.describeWorkflow(`job:${jobId}`)).found;

/** Starts the first attempts of what is pending, as a process that dies before it makes them. */
async function startAndDie(leaseMs: number) {
  await publishWithDeliveries(app.deps.db);
  const { attempts } = await app.deps.deliveryQueue.startPending({ limit: 10, leaseMs });
  return attempts;
}

/** Makes the first `count` requests to a path hang. */
function hangFirst(path: string, count: number) {
  const held: ServerResponse[] = [];
  let closed = 0;
  sink.respond(path, (_request, response, nth) => {
    if (nth > count) return void response.writeHead(204).end();
    held.push(response);
    response.once('close', () => (closed += 1));
  });
  return { held: () => held.length, closed: () => closed };
}

test('a delivery that its endpoint accepts has a job with its log, and no workflow', async () => {
  const webhook = await register('/accepted');
  await startWorker();
  await webhook.emit();
  const { jobId, attempts, workflowId } = await webhook.newest('succeeded');
  expect(workflowId).toBeNull();
  const { job, messages } = await webhook.readJob(jobId);
  expect(job).toMatchObject({
    workflowId: null,
    status: 'succeeded',
    attempts: 1,
    result: { delivered: true, httpStatus: 204, durationMs: attempts[0]?.durationMs },
    error: null,
    finishedAt: expect.any(String),
  });
  expect(messages).toEqual([
    [1, 'Attempt 1 started'],
    [2, 'The endpoint answered 204'],
    [3, 'Succeeded in attempt 1'],
  ]);
  expect(await hasWorkflow(jobId)).toBe(false);
});

test('a delivery that fails for good has a workflow that failed with its code', async () => {
  const webhook = await register('/fails', { retryPolicy: { maxAttempts: 1 } });
  sink.respond('/fails', (_request, response) => response.writeHead(500).end());
  await startWorker();
  await webhook.emit();
  const { jobId, reason, workflowId } = await webhook.newest('failed');
  expect(workflowId).toBe(`job:${jobId}`);
  expect(reason).toBe('http_status');
  const { job, messages } = await webhook.readJob(jobId);
  expect(job).toMatchObject({ status: 'failed', error: { code: 'http_status' } });
  expect(messages.map(([, message]) => message)).toEqual([
    'Attempt 1 started',
    'The endpoint answered 500',
    'Attempt 1 failed: http_status: The endpoint answered 500; no further attempt',
    'Failed: http_status',
  ]);
  expect(
    await eventually(
      () => app.deps.describeWorkflow(`job:${jobId}`),
      (state) => !state.found || state.status !== 'running',
    ),
  ).toMatchObject({ found: true, status: 'failed' });
});

test('an attempt that hangs keeps none of its batch from being recorded', async () => {
  const webhook = await register('/mixed');
  await startWorker();
  await webhook.emit();
  await webhook.newest('succeeded');
  const hanging = hangFirst('/mixed', 2);
  // While the queue is locked, deliveries are published and not started: one batch starts them.
  const { db } = app.deps;
  await db.transaction(async (trx) => {
    await eventually(() => tryLockUntilCommit(trx, 'deliveryQueue'), Boolean);
    for (let n = 0; n < 6; n++) await webhook.emit();
    await publishWithDeliveries(db);
  });
  const deliveries = await eventually(
    webhook.readDeliveries,
    (all) => all.filter(({ status }) => status === 'succeeded').length === 6,
  );
  const others = deliveries.filter(({ status }) => status !== 'succeeded');
  expect(others).toMatchObject([{ status: 'pending', attempts: [{ finishedAt: null }] }]);
  expect(hanging.held()).toBe(1);
});

describe('a cancellation', () => {
  test('of the job aborts its first attempt', async () => {
    const webhook = await register('/cancelled');
    const hanging = hangFirst('/cancelled', 1);
    await startWorker();
    await webhook.emit();
    await eventually(hanging.held, (held) => held === 1);
    const [delivery] = await webhook.readDeliveries();
    const jobId = assertDefined(delivery?.jobId, 'delivery.jobId');
    await webhook.client.post(`/api/jobs/${jobId}/cancel`).expect(202);
    await webhook.newest('cancelled');
    await eventually(hanging.closed, (closed) => closed === 1);
    const { attempts } = await eventually(
      async () => assertDefined((await webhook.readDeliveries())[0], 'the delivery'),
      ({ attempts: [first] }) => first?.finishedAt != null,
    );
    expect(attempts).toMatchObject([{ error: { code: 'interrupted' } }]);
    expect((await webhook.readJob(jobId)).job.status).toBe('cancelled');
  });

  test('of the deliveries of a disabled webhook aborts first attempts', async () => {
    const webhook = await register('/deleted');
    const hanging = hangFirst('/deleted', 1);
    await startWorker();
    await webhook.emit();
    await eventually(hanging.held, (held) => held === 1);
    await webhook.client.put(`/api/webhooks/${webhook.id}`, { enabled: false }).expect(200);
    await eventually(hanging.closed, (closed) => closed === 1);
    expect((await webhook.newest('cancelled')).reason).toBe('webhook_disabled');
  });
});

describe('without a worker', () => {
  beforeAll(stopWorker);

  test('an accepted delivery has succeeded, although it was cancelled while it was sent', async () => {
    const webhook = await register('/late');
    await webhook.emit();
    const [attempt] = await startAndDie(60_000);
    const { deliveryId, jobId, number } = assertDefined(attempt, 'attempt');
    await webhook.client.post(`/api/jobs/${jobId}/cancel`).expect(202);
    expect((await webhook.newest('cancelled')).id).toBe(deliveryId);
    const outcome = {
      durationMs: 1,
      httpStatus: 200,
      error: null,
      requestHeaders: {},
      responseBody: 'half a pair: \ud83d',
      responseTruncated: false,
    };
    const ended = { deliveryId, jobId, number, outcome, finishedAt: new Date(), lines: [] };
    const changed = await writeFirstAttempts(
      app.deps.db,
      recordFirstAttempts([{ ...ended, succeeded: true, result: {} }], []),
    );
    expect(changed).toEqual(new Set());
    expect(await webhook.newest('succeeded')).toMatchObject({ reason: null });
    expect((await webhook.readJob(jobId)).job.status).toBe('cancelled');
  });

  test('a lease that has just expired can be extended: its process may have waited for the database', async () => {
    const webhook = await register('/slow');
    await webhook.emit();
    const attempts = await startAndDie(0);
    await app.deps.deliveryQueue.continueAbandoned();
    const { db } = app.deps;
    expect(await extendLeases(db, attempts, 60_000)).toEqual(
      new Set(attempts.map(({ deliveryId }) => deliveryId)),
    );
    await db('deliveries')
      .where({ webhook_id: webhook.id })
      .update({ leased_until: new Date(0) });
  });

  test('an outcome that is recorded again changes nothing; followers of the log hear of a failure', async () => {
    const webhook = await register('/again');
    await webhook.emit();
    await webhook.emit();
    const [first, second] = await startAndDie(60_000);
    const record = createFirstAttemptRecorder(app.deps);
    const end = (attempt: FirstAttempt | undefined, code?: string): EndedAttempt => ({
      attempt: assertDefined(attempt, 'attempt'),
      outcome: { ...noResponse({ code: '', message: '' }), error: null, httpStatus: 204 },
      failure: code === undefined ? undefined : new JobFailure(code, 'x'),
      notEndpointFault: false,
      startedAt: new Date(),
      finishedAt: new Date(),
    });
    await record(end(first));
    await record(end(first));
    const entries = await app.deps
      .db('audit_entries')
      .where({ subject_id: webhook.id, action: 'webhook.complete_deliveries' });
    expect(entries).toHaveLength(1);
    const notifications = createNotifications(app.databaseUrl, app.deps.log);
    let heard = 0;
    notifications.on(jobLogTopic(second?.jobId ?? ''), () => (heard += 1));
    notifications.start();
    const hearsAgain = (count: number) =>
      eventually(
        () => heard,
        (times) => times === count,
      );
    // All listeners are called when the connection is made.
    await hearsAgain(1);
    await record(end(second, 'http_status'));
    await hearsAgain(2);
    await notifications.stop();
  });

  test('an endpoint that was removed disables its webhook, also without Temporal', async () => {
    const webhook = await register('/removed');
    await webhook.emit();
    const [attempt] = await startAndDie(60_000);
    await createFirstAttemptRecorder(app.deps)({
      attempt: assertDefined(attempt, 'attempt'),
      outcome: { ...noResponse({ code: 'http_status', message: 'x' }), httpStatus: 410 },
      failure: new JobFailure(ENDPOINT_REMOVED, 'x', { retryable: false }),
      notEndpointFault: false,
      startedAt: new Date(),
      finishedAt: new Date(),
    });
    expect(await webhook.newest('failed')).toMatchObject({ reason: ENDPOINT_REMOVED });
    expect(
      await webhook.client.get<WebhookRecord>(`/api/webhooks/${webhook.id}`).expect(200),
    ).toMatchObject({ enabled: false, disabledReason: ENDPOINT_REMOVED });
    // Its workflow is started all the same, and shows the failure.
    expect(
      await app.deps.db('outbox').where({ workflow_id: `job:${attempt?.jobId}` }),
    ).toHaveLength(1);
  });

  test('the attempt after one whose process has died waits as after any failure', async () => {
    const webhook = await register('/backs-off');
    await webhook.emit();
    const [attempt] = await startAndDie(0);
    const { db, deliveryQueue } = app.deps;
    const read = () =>
      db('outbox')
        .where({ workflow_id: `job:${attempt?.jobId}` })
        .first();
    const { task } = await eventually(
      async () => {
        await deliveryQueue.continueAbandoned();
        return read();
      },
      (row) => row !== undefined,
    );
    const { firstAttempt } = task.input;
    expect(firstAttempt).toMatchObject({ code: 'worker_lost' });
    expect(firstAttempt.retryInMs).toBeGreaterThanOrEqual(5_000);
    expect(await webhook.newest('pending')).toMatchObject({
      attempts: [{ error: { code: 'interrupted' }, finishedAt: expect.any(String) }],
    });
    await db('outbox')
      .where({ workflow_id: `job:${attempt?.jobId}` })
      .delete();
    await db('deliveries').where({ id: attempt?.deliveryId }).update({ status: 'cancelled' });
  });

  test('a process that dies during a first attempt leaves it to a workflow', async () => {
    const webhook = await register('/died', { retryPolicy: { maxIntervalSeconds: 1 } });
    await webhook.emit();
    const [attempt] = await startAndDie(0);
    expect(attempt).toMatchObject({ webhookId: webhook.id, number: 1 });
    const [started] = await webhook.readDeliveries();
    expect(started).toMatchObject({ status: 'pending', attempts: [{ finishedAt: null }] });
    expect((await webhook.readJob(attempt?.jobId ?? '')).job.workflowId).toBeNull();
    await startWorker();
    const delivery = await webhook.newest('succeeded');
    expect(delivery.jobId).toBe(attempt?.jobId);
    expect(delivery.attempts).toMatchObject([
      { number: 1, error: { code: 'interrupted' } },
      { number: 2, httpStatus: 204, error: null },
    ]);
    expect(sink.requestsTo('/died')).toHaveLength(1);
    expect(await hasWorkflow(delivery.jobId)).toBe(true);
    const { job } = await webhook.readJob(delivery.jobId);
    expect(job).toMatchObject({
      status: 'succeeded',
      attempts: 2,
      workflowId: `job:${delivery.jobId}`,
    });
  });

  test('a process that stops leaves its first attempts to workflows', async () => {
    const webhook = await register('/stopped');
    const hanging = hangFirst('/stopped', 1);
    await startWorker();
    await webhook.emit();
    await eventually(hanging.held, (held) => held === 1);
    await stopWorker();
    const [interrupted] = await webhook.readDeliveries();
    expect(interrupted).toMatchObject({
      status: 'pending',
      attempts: [{ number: 1, error: { code: 'interrupted' } }],
    });
    await startWorker();
    const { attempts, jobId } = await webhook.newest('succeeded');
    expect(attempts).toMatchObject([{ number: 1 }, { number: 2, httpStatus: 204 }]);
    expect((await webhook.readJob(jobId)).job).toMatchObject({ attempts: 2, interruptions: 1 });
  });
});
