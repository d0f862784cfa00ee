import { describe, expect, test } from '@jest/globals';
import type { EventList } from '../../../api/events/schemas.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { DeliveryRecord } from '../../../api/webhooks/schemas.ts';
import { replayEvents } from '../../../db/events/replay.ts';
import type { JobTools } from '../../../domain/jobs/jobType.ts';
import { createReplayJobType } from '../../../services/jobTypes/webhooks/replay.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import { respondWith } from '../../support/sink.ts';
import { allFinished, withWebhookReceiver } from '../../support/webhooks.ts';

const {
  fixture,
  asNewTenant,
  register,
  createJob,
  getDeliveries,
  waitForDeliveries,
  waitForDelivery,
} = withWebhookReceiver();

type EventRow = { id: string; sequence: number };

/** A job of the type `webhook.replay`. */
type ReplayJob = JobRecord & {
  payload: { afterSequence: number };
  result: { deliveries: number; complete: boolean } | null;
};

/** Starts a replay and waits for its job. */
const replay = (client: TestClient, id: string, from: object) =>
  client.post<ReplayJob>(`/api/webhooks/${id}/replay`, from, { prefer: 'wait=20' }).expect(202);

const eventOfJob = async (client: TestClient, jobId: unknown) => {
  const { items } = await client
    .get<EventList>(`/api/events?subject=${String(jobId)}&type=job.created`)
    .expect(200);
  return items[0];
};

describe('redelivery', () => {
  test('sends a finished delivery again, but none in flight', async () => {
    const client = asNewTenant();
    fixture.sink.respond('/again', respondWith(500));
    const webhook = await register(client, '/again', { retryPolicy: { maxAttempts: 1 } });
    await createJob(client);
    const failed = await waitForDelivery(client, webhook.id);
    const path = `/api/deliveries/${failed.id}/redeliver`;
    fixture.sink.respond(
      '/again',
      (_request, response) => void setTimeout(() => response.writeHead(200).end(), 500),
    );
    const redelivered = await client.post<DeliveryRecord>(path).expect(202);
    expect(redelivered.status).toBe('pending');
    expect(redelivered.jobId).not.toBe(failed.jobId);
    await eventually(
      () => fixture.sink.requestsTo('/again'),
      (all) => all.length === 2,
    );
    expect((await client.post<ProblemBody>(path).expect(409)).code).toBe('delivery_pending');
    expect(await waitForDelivery(client, webhook.id)).toMatchObject({
      id: failed.id,
      status: 'succeeded',
      reason: null,
      attemptCount: 2,
    });
    const ids = fixture.sink.requestsTo('/again').map(({ headers }) => headers['webhook-id']);
    expect(new Set(ids).size).toBe(1);
    await client.put(`/api/webhooks/${webhook.id}`, { enabled: false }).expect(200);
    expect((await client.post<ProblemBody>(path).expect(409)).code).toBe('webhook_disabled');
    await asNewTenant().post(path).expect(404);
  });

  test('repeated with an Idempotency-Key returns the delivery', async () => {
    const client = asNewTenant();
    const webhook = await register(client, '/repeated');
    await createJob(client);
    const { id } = await waitForDelivery(client, webhook.id);
    const redeliver = () =>
      client
        .post<DeliveryRecord>(`/api/deliveries/${id}/redeliver`, undefined, {
          'idempotency-key': `redeliver-${id}`,
        })
        .expect(202);
    const first = await redeliver();
    expect(first.id).toBe(id);
    expect(await redeliver()).toMatchObject({ id, jobId: first.jobId });
  });

  test('sends a delivery that waits for a retry now, alone or by a replay', async () => {
    const client = asNewTenant();
    fixture.sink.respond('/waits', respondWith(500));
    const webhook = await register(client, '/waits', { retryPolicy: { maxIntervalSeconds: 2 } });
    for (let n = 0; n < 2; n++) await createJob(client);
    const waiting = await waitForDeliveries(
      client,
      webhook.id,
      (all) => all.length === 2 && all.every(({ attempts }) => attempts[0]?.httpStatus === 500),
    );
    const [newer, older] = waiting as [DeliveryRecord, DeliveryRecord];
    fixture.sink.respond('/waits', respondWith(200));
    const response = await client.post<DeliveryRecord>(
      `/api/deliveries/${newer.id}/redeliver`,
      undefined,
      { prefer: 'wait=10' },
    );
    expect(response.status).toBe(202);
    expect(response.headers.get('location')).toBe(`/api/deliveries/${newer.id}`);
    expect(response.body).toMatchObject({ status: 'succeeded', attemptCount: 2 });
    const job = await replay(client, webhook.id, { afterSequence: older.sequence - 1 });
    expect(job).toMatchObject({ status: 'succeeded', result: { deliveries: 2 } });
    await eventually(
      () => getDeliveries(client, webhook.id),
      (all) => all.filter(({ status }) => status === 'succeeded').length >= 2,
    );
    // The earlier jobs end by themselves.
    for (const { jobId } of waiting) {
      const earlier = await eventually(
        () => client.get<JobRecord>(`/api/jobs/${jobId}`).expect(200),
        ({ status }) => status !== 'running',
      );
      expect(earlier).toMatchObject({ status: 'succeeded', result: { superseded: true } });
    }
  });
});

describe('a replay', () => {
  test('sends missed events and those of finished deliveries, once', async () => {
    const client = asNewTenant();
    const webhook = await register(client, '/replayed');
    const path = `/api/webhooks/${webhook.id}`;
    const before = await createJob(client);
    await waitForDelivery(client, webhook.id);
    await client.put(path, { enabled: false }).expect(200);
    const missed = [(await createJob(client)).id, (await createJob(client)).id];
    // Reading events publishes them while the webhook is disabled.
    await client.get('/api/events').expect(200);
    const refusal = await client
      .post<ProblemBody>(`${path}/replay`, { afterSequence: 0 })
      .expect(409);
    expect(refusal.code).toBe('webhook_disabled');
    await client.put(path, { enabled: true }).expect(200);
    const started = await replay(client, webhook.id, { afterSequence: 0 });
    expect(started.type).toBe('webhook.replay');
    const finished = await client
      .get<JobRecord>(`/api/jobs/${started.id}`, { prefer: 'wait=20' })
      .expect(200);
    expect(finished).toMatchObject({
      status: 'succeeded',
      result: { deliveries: 3, complete: true },
    });
    // The replay is a job too, so the webhook receives its event as well.
    await waitForDeliveries(client, webhook.id, allFinished(4));
    const received = fixture.sink
      .bodiesTo('/replayed')
      .filter(({ data }) => data.type === 'core.echo')
      .map(({ data }) => data.jobId);
    expect(received.sort()).toEqual([before.id, before.id, ...missed].sort());
  });

  test('starts at a time', async () => {
    const client = asNewTenant();
    const webhook = await register(client, '/since');
    const jobs = [await createJob(client), await createJob(client)];
    const event = await eventOfJob(client, jobs[0]?.id);
    const sequence = event?.sequence ?? 0;
    await waitForDeliveries(client, webhook.id, allFinished(2));
    const past = await replay(client, webhook.id, { since: event?.createdAt });
    expect(past.result?.deliveries).toBeGreaterThanOrEqual(2);
    expect(past.payload.afterSequence).toBeLessThan(sequence);
    expect(past.payload.afterSequence).toBeGreaterThanOrEqual(sequence - 3);
    const future = await replay(client, webhook.id, {
      since: new Date(Date.now() + 60_000).toISOString(),
    });
    expect(future.result).toMatchObject({ deliveries: 0, complete: true });
  });

  test('since a time includes what was published before a large write that started then', async () => {
    const client = asNewTenant();
    const webhook = await register(client, '/overtaken');
    const { db, ids } = fixture.app.deps;
    const since = new Date();
    const { id } = await createJob(client);
    await waitForDeliveries(client, webhook.id, allFinished(1));
    const { sequence, ...row } = (await db('events')
      .where({ type: 'job.created', subject_id: id })
      .first()) as EventRow;
    await db('events').insert(
      Array.from({ length: 1_001 }, () => ({
        ...row,
        id: ids.next('evt'),
        tenant_id: 'x',
        created_at: since,
      })),
    );
    const { result, payload } = await replay(client, webhook.id, { since: since.toISOString() });
    expect(payload.afterSequence).toBe(sequence - 1);
    expect(result?.deliveries).toBeGreaterThanOrEqual(1);
  });

  test('needs exactly one start', async () => {
    const client = asNewTenant();
    const webhook = await register(client, '/start');
    for (const body of [{}, { afterSequence: 1, since: new Date().toISOString() }])
      await client.post(`/api/webhooks/${webhook.id}/replay`, body).expect(400);
  });

  test('of a repaired endpoint delivers everything while a cancellation is in progress', async () => {
    const client = asNewTenant();
    fixture.sink.respond('/repaired', respondWith(500));
    const webhook = await register(client, '/repaired', {
      retryPolicy: { maxIntervalSeconds: 3_600 },
    });
    const jobIds: string[] = [];
    for (let n = 0; n < 16; n++) jobIds.push((await createJob(client)).id);
    await waitForDeliveries(
      client,
      webhook.id,
      (all) => all.length === 16 && all.filter(({ attemptCount }) => attemptCount > 0).length > 8,
    );
    await client.put(`/api/webhooks/${webhook.id}`, { enabled: false }).expect(200);
    fixture.sink.respond('/repaired', respondWith(200));
    const failed = fixture.sink.requestsTo('/repaired').length;
    await client.put(`/api/webhooks/${webhook.id}`, { enabled: true }).expect(200);
    const job = await replay(client, webhook.id, { afterSequence: 0 });
    expect(job.result?.complete).toBe(true);
    await eventually(
      () =>
        new Set(
          fixture.sink
            .bodiesTo('/repaired')
            .slice(failed)
            .map(({ data }) => data.jobId),
        ),
      (received) => jobIds.every((id) => received.has(id)),
    );
  });

  test('that is attempted again skips what it has queued', async () => {
    const client = asNewTenant();
    const webhook = await register(client, '/resumed');
    for (let n = 0; n < 3; n++) await createJob(client);
    await waitForDeliveries(client, webhook.id, allFinished(3));
    const { db, ids } = fixture.app.deps;
    const range = { after: 0, upTo: Number.MAX_SAFE_INTEGER, limit: 200, now: new Date(), ids };
    const replayAs = async (jobId: string) => {
      const { queued } = await db.transaction((trx) =>
        replayEvents(trx, { ...range, webhook, jobId }),
      );
      await waitForDeliveries(client, webhook.id, allFinished(3));
      return queued;
    };
    expect(await replayAs('job_one')).toBe(3);
    expect(await replayAs('job_one')).toBe(0);
    // The result counts what the attempts have queued together.
    const replayType = createReplayJobType(fixture.app.deps);
    if (!('run' in replayType)) throw new Error('The job type has no code');
    const payload = { webhookId: webhook.id, afterSequence: 0, upToSequence: range.upTo };
    const tools = {
      jobId: 'job_one',
      signal: new AbortController().signal,
      log: () => undefined,
      progress: () => undefined,
    };
    expect(await replayType.run(payload, tools as unknown as JobTools)).toMatchObject({
      deliveries: 3,
      complete: true,
    });
    expect(await replayAs('job_two')).toBe(3);
    expect(fixture.sink.requestsTo('/resumed')).toHaveLength(9);
  });
});

test('a replay of exactly as many events as are allowed is complete', async () => {
  const client = asNewTenant();
  const webhook = await register(client, '/exact');
  for (let n = 0; n < 3; n++) await createJob(client);
  await waitForDeliveries(client, webhook.id, allFinished(3));
  const { db, ids } = fixture.app.deps;
  const upTo = Number.MAX_SAFE_INTEGER;
  const batch = { webhook, jobId: 'job_exact', after: 0, upTo, now: new Date(), ids };
  const moreAfter = (limit: number) =>
    db.transaction(async (trx) => (await replayEvents(trx, { ...batch, limit })).more);
  expect([await moreAfter(2), await moreAfter(3), await moreAfter(4)]).toEqual([
    true,
    false,
    false,
  ]);
});

test('only webhooks create delivery jobs', async () => {
  const client = asNewTenant();
  const direct = await client
    .post<ProblemBody>('/api/jobs', {
      type: 'webhook.deliver',
      payload: { deliveryId: 'dlv_x' },
    })
    .expect(400);
  expect(direct.errors?.[0]?.code).toBe('job_type_internal');
  const webhook = await register(client, '/direct');
  await createJob(client);
  const delivery = await waitForDelivery(client, webhook.id);
  const retry = await client.post<ProblemBody>(`/api/jobs/${delivery.jobId}/retry`).expect(409);
  expect(retry.code).toBe('job_not_retryable');
});
