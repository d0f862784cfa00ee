import type { ServerResponse } from 'node:http';
import { beforeAll, describe, expect, test } from '@jest/globals';
import type { DeliveryRecord } from '../../../api/webhooks/schemas.ts';
import {
  finishDeliveryAttempt,
  startDeliveryAttempt,
} from '../../../db/webhooks/deliveryAttempts.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import type { TestClient } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import { respondWith } from '../../support/sink.ts';
import { allFinished, withWebhookReceiver } from '../../support/webhooks.ts';

const {
  fixture,
  asNewTenant,
  register: registerFor,
  readWebhook,
  waitForDeliveries,
  waitForDelivery,
  patchRow,
} = withWebhookReceiver();
const db = () => fixture.app.deps.db;

const EVENT = 'webhook.updated';
const register = (client: TestClient, path: string, more: object = {}) =>
  registerFor(client, path, { eventTypes: [EVENT], ...more });

/** A tenant that no other test uses. `emit` emits events, which cost less than jobs. */
async function newTenant() {
  const client = asNewTenant();
  const changed = await register(client, '/changed', { enabled: false });
  let changes = 0;
  const change = () =>
    client.put(`/api/webhooks/${changed.id}`, { description: `${++changes}` }).expect(200);
  return { client, emit: (count = 1) => Promise.all(Array.from({ length: count }, change)) };
}

/** Makes a path hold its responses back until `release`. */
function hangEndpoint(path: string) {
  const held = new Set<ServerResponse>();
  let most = 0;
  let open = false;
  fixture.sink.respond(path, (_request, response) => {
    if (open) return void response.writeHead(204).end();
    held.add(response);
    most = Math.max(most, held.size);
    response.once('close', () => held.delete(response));
  });
  return {
    /** The number of requests without a response now, and the largest number so far. */
    held: () => held.size,
    most: () => most,
    release() {
      open = true;
      for (const response of held) response.writeHead(204).end();
    },
  };
}

const countOf = async (webhookId: string, status: DeliveryRecord['status']) =>
  (await db()('deliveries').where({ webhook_id: webhookId, status }).pluck('id')).length;

const countJobs = async (webhookId: string) =>
  (await db()('jobs').where({ source_id: webhookId })).length;

describe('an endpoint that hangs', () => {
  let dripping: { client: TestClient; id: string };
  /** Its 15 seconds pass during the other tests. */
  beforeAll(async () => {
    fixture.sink.respond('/drip', (_request, response) => {
      response.writeHead(200);
      const timer = setInterval(() => response.write('.'), 200);
      response.on('close', () => clearInterval(timer));
    });
    const { client, emit } = await newTenant();
    const { id } = await register(client, '/drip', { retryPolicy: { maxAttempts: 1 } });
    dripping = { client, id };
    await emit();
  });

  test('has 50 deliveries in flight, and does not delay another endpoint', async () => {
    const { client, emit } = await newTenant();
    const slow = await register(client, '/hang');
    await emit();
    await waitForDelivery(client, slow.id);
    const hanging = hangEndpoint('/hang');
    await emit(55);
    await eventually(hanging.held, (held) => held === 50);
    // A webhook gets events of the second before it, unless they are published already.
    await eventually(
      () => countOf(slow.id, 'pending'),
      (pending) => pending === 55,
    );
    // Its deliveries are queued behind those of the slow one.
    const other = await register(client, '/beside', {
      eventTypes: ['job.cancelled', EVENT],
    });
    await emit();
    await waitForDelivery(client, other.id);
    expect(await countOf(slow.id, 'pending')).toBe(56);
    hanging.release();
    await eventually(
      () => countOf(slow.id, 'succeeded'),
      (succeeded) => succeeded === 57,
      { withinMs: 40_000 },
    );
    expect(hanging.most()).toBe(50);
  });

  test('has 2 deliveries in flight while every attempt fails', async () => {
    const { client, emit } = await newTenant();
    const hanging = hangEndpoint('/hang-failing');
    const webhook = await register(client, '/hang-failing');
    await patchRow(webhook.id, { failing_since: new Date() });
    await emit(12);
    await eventually(hanging.held, (held) => held === 2);
    expect(await countJobs(webhook.id)).toBe(2);
    hanging.release();
    await waitForDeliveries(client, webhook.id, allFinished(12));
    // It is written after the outcomes of the attempts.
    await eventually(
      () => readWebhook(client, webhook.id),
      ({ failingSince }) => failingSince === null,
    );
  });

  test('has its retries and redeliveries wait for free slots', async () => {
    const { client, emit } = await newTenant();
    fixture.sink.respond('/hang-retries', respondWith(500));
    const webhook = await register(client, '/hang-retries', {
      retryPolicy: { maxIntervalSeconds: 2 },
    });
    await emit(12);
    const deliveries = await waitForDeliveries(
      client,
      webhook.id,
      (all) =>
        all.length === 12 &&
        all.every(({ attempts }) => attempts.some(({ httpStatus }) => httpStatus === 500)),
    );
    const failedAt = deliveries.flatMap(({ attempts }) =>
      attempts.map(({ startedAt, durationMs }) => Date.parse(startedAt) + (durationMs ?? 0)),
    );
    /** The longest planned wait of a retry, and a moment until it begins. */
    const allDueAt = Math.max(...failedAt) + 2_500;
    const hanging = hangEndpoint('/hang-retries');
    for (const { id } of deliveries.slice(0, 8))
      await client.post(`/api/deliveries/${id}/redeliver`);
    await eventually(hanging.held, (held) => held === 2);
    const inFlight = await db()('deliveries').where({
      webhook_id: webhook.id,
      in_flight: true,
      status: 'pending',
    });
    expect(inFlight).toHaveLength(2);
    await eventually(
      () => Date.now(),
      (now) => now > allDueAt,
    );
    expect(hanging.most()).toBe(2);
    hanging.release();
    await eventually(
      () => countOf(webhook.id, 'succeeded'),
      (succeeded) => succeeded === 12,
      { withinMs: 50_000 },
    );
  });

  test('has deliveries without a job cancelled when its webhook is disabled', async () => {
    const { client, emit } = await newTenant();
    const hanging = hangEndpoint('/hang-disabled');
    const webhook = await register(client, '/hang-disabled', { retryPolicy: { maxAttempts: 1 } });
    await emit(12);
    await eventually(hanging.held, (held) => held === 2);
    await client.put(`/api/webhooks/${webhook.id}`, { enabled: false }).expect(200);
    const cancelled = await eventually(
      async (): Promise<{ reason: string }[]> =>
        db()('deliveries')
          .where({ webhook_id: webhook.id, job_id: null, status: 'cancelled' })
          .select('reason'),
      (rows) => rows.length > 0,
    );
    expect(new Set(cancelled.map(({ reason }) => reason))).toEqual(new Set(['webhook_disabled']));
    hanging.release();
    await eventually(
      () => countOf(webhook.id, 'pending'),
      (pending) => pending === 0,
    );
  });

  test('is disconnected after 15 seconds, even when it sends data', async () => {
    const { client, id } = dripping;
    const delivery = await waitForDelivery(client, id);
    expect(delivery).toMatchObject({
      status: 'failed',
      reason: 'timed_out',
      attempts: [{ httpStatus: null, error: { code: 'timed_out' } }],
    });
    expect(delivery.attempts[0]?.durationMs).toBeGreaterThan(14_500);
    expect(delivery.attempts[0]?.durationMs).toBeLessThan(17_000);
  });
});

test('a delivery that waits for its next attempt keeps no slot when its attempt could not start', async () => {
  const { client, emit } = await newTenant();
  fixture.sink.respond('/unstarted', respondWith(500));
  const webhook = await register(client, '/unstarted');
  await emit();
  const sent = ([first]: DeliveryRecord[]) => first?.attempts[0]?.httpStatus === 500;
  const { id } = await waitForDelivery(client, webhook.id, sent);
  // As if the database were away in this moment.
  await db().raw(`
    CREATE FUNCTION refuse_attempt() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE EXCEPTION 'away'; END $$;
    CREATE TRIGGER refuse_attempt BEFORE INSERT ON delivery_attempts
      FOR EACH ROW WHEN (NEW.delivery_id = '${id}') EXECUTE FUNCTION refuse_attempt()`);
  try {
    await client.post(`/api/deliveries/${id}/redeliver`);
    const states = () =>
      db()('deliveries AS d')
        .join('jobs AS j', 'j.id', 'd.job_id')
        .where('d.id', id)
        .first('j.attempts', 'j.error', 'd.in_flight');
    const waiting = await eventually(states, (row) => row?.error !== null);
    expect(waiting).toMatchObject({ attempts: 1, in_flight: false });
  } finally {
    await db().raw('DROP FUNCTION refuse_attempt CASCADE');
  }
});

test('an attempt ends an interrupted one, and does not repeat a successful one', async () => {
  const { client, emit } = await newTenant();
  hangEndpoint('/interrupted');
  const webhook = await register(client, '/interrupted');
  await emit();
  const delivery = await waitForDelivery(
    client,
    webhook.id,
    ([first]) => first?.attemptCount === 1,
  );
  const deliveryId = delivery.id;
  const jobId = assertDefined(delivery.jobId, 'delivery.jobId');
  const start = (job: string) =>
    startDeliveryAttempt(db(), { deliveryId, jobId: job, now: new Date() });
  const finish = (number: number, httpStatus: number) =>
    finishDeliveryAttempt(db(), {
      deliveryId,
      number,
      now: new Date(),
      outcome: {
        durationMs: 1,
        httpStatus,
        error: httpStatus < 300 ? null : { code: 'http_status', message: 'x' },
        requestHeaders: {},
        responseBody: '',
        responseTruncated: false,
      },
    });

  expect(await start('job_of_another_delivery')).toBeUndefined();
  expect(await start(jobId)).toMatchObject({ number: 2 });
  const [first] = await db()('delivery_attempts').where({ delivery_id: deliveryId, number: 1 });
  expect(first).toMatchObject({ error: { code: 'interrupted' }, finished_at: expect.any(Date) });
  await finish(2, 500);
  expect(await start(jobId)).toMatchObject({ number: 3 });
  await finish(3, 500);
  expect(await start(jobId)).toMatchObject({ number: 4 });
  await finish(4, 204);
  expect(await start(jobId)).toMatchObject({ number: null, enabled: true });
  // Only the record: a request would also cancel the delivery.
  const disabled = { enabled: false, disabled_at: new Date(), disabled_reason: 'request' };
  await patchRow(webhook.id, disabled);
  expect(await start(jobId)).toMatchObject({ number: null, enabled: false });
});
