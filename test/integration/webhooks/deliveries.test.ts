import { expect, test } from '@jest/globals';
import type { EventWithDeliveries } from '../../../api/events/schemas.ts';
import type { JobRecord, LogRecord } from '../../../api/jobs/schemas.ts';
import type { DeliveryRecord, WebhookRecord } from '../../../api/webhooks/schemas.ts';
import { startApp } from '../../support/app.ts';
import type { ProblemBody } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import { respondWith } from '../../support/sink.ts';
import type { Page } from '../../support/users.ts';
import {
  allFinished,
  fastRetries,
  verifyMessage,
  withWebhookReceiver,
} from '../../support/webhooks.ts';

const {
  fixture,
  asNewTenant,
  register,
  createJob,
  readWebhook,
  waitForDeliveries,
  waitForDelivery,
} = withWebhookReceiver();

test('a delivery is signed, contains the event, and is recorded with its attempt', async () => {
  const client = asNewTenant();
  fixture.sink.respond(
    '/signed',
    respondWith(200, { 'content-type': 'text/html' }, '<b>hello</b>\n\u0007\u001b[2J\u009b\u202e'),
  );
  const webhook = await register(client, '/signed');
  const job = await createJob(client);
  const delivery = await waitForDelivery(client, webhook.id);
  const [request] = fixture.sink.requestsTo('/signed');
  expect(verifyMessage(webhook.secret, request)).toEqual({
    type: 'job.created',
    timestamp: expect.any(String),
    sequence: expect.any(Number),
    tenantId: job.tenantId,
    subject: { type: 'job', id: job.id },
    actorId: 'alice',
    data: {
      jobId: job.id,
      type: 'core.echo',
      status: 'queued',
      attempts: 0,
      source: { kind: 'api', id: null },
      error: null,
    },
  });
  const changed = request && { ...request, body: `${request.body} ` };
  expect(() => verifyMessage(webhook.secret, changed)).toThrow();
  expect(delivery).toMatchObject({
    status: 'succeeded',
    reason: null,
    eventType: 'job.created',
    eventId: request?.headers['webhook-id'],
    attemptCount: 1,
  });
  expect(delivery.attempts).toEqual([
    {
      number: 1,
      jobId: delivery.jobId,
      job: { id: delivery.jobId, purged: false },
      startedAt: expect.any(String),
      finishedAt: expect.any(String),
      durationMs: expect.any(Number),
      httpStatus: 200,
      error: null,
      requestHeaders: {
        'content-type': 'application/json',
        'user-agent': 'Holdfast-Webhooks',
        'webhook-id': delivery.eventId,
        'webhook-timestamp': request?.headers['webhook-timestamp'],
      },
      responseBody: '<b>hello</b>\n\\u0007\\u001b[2J\\u009b\\u202e',
      responseTruncated: false,
    },
  ]);
  const event = await client
    .get<EventWithDeliveries>(`/api/events/${delivery.eventId}`)
    .expect(200);
  expect(event).toMatchObject({
    id: delivery.eventId,
    type: 'job.created',
    subject: { type: 'job', id: job.id },
    deliveries: [{ id: delivery.id, attempts: [{ number: 1 }] }],
  });
  const read = await client.get<DeliveryRecord>(`/api/deliveries/${delivery.id}`).expect(200);
  expect(read).toEqual(delivery);
  const deliveryJob = await client.get<JobRecord>(`/api/jobs/${delivery.jobId}`).expect(200);
  expect(deliveryJob).toMatchObject({
    type: 'webhook.deliver',
    status: 'succeeded',
    source: { kind: 'webhook', id: webhook.id },
    payload: { deliveryId: delivery.id },
  });
  const { db } = fixture.app.deps;
  expect(await db('events').where({ subject_id: delivery.jobId })).toEqual([]);
});

test('a failed delivery is retried with the same id until it succeeds', async () => {
  const client = asNewTenant();
  fixture.sink.respond('/flaky', (_request, response, nth) =>
    response.writeHead(nth < 3 ? 500 : 200).end(),
  );
  const webhook = await register(client, '/flaky', fastRetries);
  await createJob(client);
  const delivery = await waitForDelivery(client, webhook.id);
  expect(delivery).toMatchObject({ status: 'succeeded', attemptCount: 3 });
  expect(delivery.attempts.map(({ error }) => error?.code ?? null)).toEqual([
    'http_status',
    'http_status',
    null,
  ]);
  const requests = fixture.sink.requestsTo('/flaky');
  expect(new Set(requests.map(({ headers }) => headers['webhook-id']))).toEqual(
    new Set([delivery.eventId]),
  );
  expect(new Set(requests.map(({ body }) => body)).size).toBe(1);
  // It is written after the outcome.
  await eventually(
    () => readWebhook(client, webhook.id),
    ({ failingSince }) => failingSince === null,
  );
});

test('a delivery fails after the last attempt, and the webhook shows since when it fails', async () => {
  const client = asNewTenant();
  fixture.sink.respond('/down', respondWith(500));
  const webhook = await register(client, '/down', fastRetries);
  await createJob(client);
  const delivery = await waitForDelivery(client, webhook.id);
  expect(delivery).toMatchObject({ status: 'failed', reason: 'http_status', attemptCount: 3 });
  expect((await readWebhook(client, webhook.id)).failingSince).toEqual(expect.any(String));
  const list = (status: string) =>
    client
      .get<Page<DeliveryRecord>>(`/api/webhooks/${webhook.id}/deliveries?status=${status}`)
      .expect(200);
  expect((await list('failed')).items.map(({ id }) => id)).toEqual([delivery.id]);
  const everywhere = await client
    .get<Page<DeliveryRecord>>('/api/deliveries?status=failed&count=true')
    .expect(200);
  expect(everywhere.items.map(({ id }) => id)).toEqual([delivery.id]);
  expect((await list('succeeded')).items).toEqual([]);
});

test('retries follow the plan unless the webhook shortens it', async () => {
  const client = asNewTenant();
  fixture.sink.respond('/plan', respondWith(500));
  const webhook = await register(client, '/plan');
  const job = await createJob(client);
  const delivery = await waitForDelivery(
    client,
    webhook.id,
    ([first]) => first?.attemptCount === 1 && first.attempts[0]?.finishedAt != null,
  );
  const { retryPolicy, id } = await client
    .get<JobRecord>(`/api/jobs/${delivery.jobId}`)
    .expect(200);
  expect(retryPolicy).toMatchObject({
    maxAttempts: 10,
    intervalsSeconds: [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400],
    jitter: 0.1,
  });
  const findDelay = async () => {
    const { items } = await client.get<{ items: LogRecord[] }>(`/api/jobs/${id}/logs`).expect(200);
    return items
      .map(({ message }) => /next attempt in ([\d.]+) s/.exec(message)?.[1])
      .find((delay) => delay !== undefined);
  };
  const delaySeconds = Number(await eventually(findDelay, (delay) => delay !== undefined));
  expect(delaySeconds).toBeGreaterThanOrEqual(5);
  expect(delaySeconds).toBeLessThanOrEqual(5.5);
  expect(job.retryPolicy.intervalsSeconds).toBeUndefined();
});

test('Retry-After is honoured with 429, 502, 503 and 504', async () => {
  const client = asNewTenant();
  const pauseAfter = async (code: number) => {
    const path = `/later${code}`;
    fixture.sink.respond(path, (_request, response, nth) =>
      response.writeHead(nth === 1 ? code : 200, { 'retry-after': '1' }).end(),
    );
    const webhook = await register(client, path, fastRetries);
    return async () => {
      await waitForDelivery(client, webhook.id);
      const [first, second] = fixture.sink.requestsTo(path);
      return (second?.at ?? 0) - (first?.at ?? 0);
    };
  };
  const pauses = await Promise.all([429, 502, 503, 504].map(pauseAfter));
  await createJob(client);
  for (const pause of pauses) expect(await pause()).toBeGreaterThanOrEqual(990);
});

test('Retry-After is ignored with other statuses', async () => {
  const client = asNewTenant();
  fixture.sink.respond('/never', (_request, response, nth) =>
    response.writeHead(nth === 1 ? 500 : 200, { 'retry-after': '3600' }).end(),
  );
  const webhook = await register(client, '/never', fastRetries);
  await createJob(client);
  expect(await waitForDelivery(client, webhook.id)).toMatchObject({ status: 'succeeded' });
});

test('the recorded response masks what it repeats of the URL and the signature', async () => {
  const client = asNewTenant();
  const path = '/hooks/T01/AbCdEfGhIjKlMnOp%2B24';
  const query = '?key=a%2Fsecret&team=blue';
  fixture.sink.respond(path, ({ headers }, response) => {
    const signature = String(headers['webhook-signature']);
    const lines = [
      `No hook ${path}${query}, AbCdEfGhIjKlMnOp%2B24 or AbCdEfGhIjKlMnOp+24`,
      decodeURIComponent(path + query),
      JSON.stringify({ uri: path }).replaceAll('/', String.raw`\/`),
      `key a/secret`,
      `signed ${signature} ${signature.replace('v1,', '')}`,
    ];
    response.writeHead(404).end(lines.join('\n'));
  });
  const webhook = await register(client, path + query, { retryPolicy: { maxAttempts: 1 } });
  const test = await client
    .post<{ responseBody: string }>(`/api/webhooks/${webhook.id}/test`)
    .expect(200);
  await createJob(client);
  const delivery = await waitForDelivery(client, webhook.id);
  const found = await client.get<DeliveryRecord>(`/api/deliveries/${delivery.id}`).expect(200);
  for (const text of [test.responseBody, found.attempts[0]?.responseBody])
    expect(text).toBe(
      [
        'No hook ********, ******** or ********',
        '********',
        '{"uri":"********"}',
        'key ********',
        'signed ******** ********',
      ].join('\n'),
    );
});

test('a filter by time finds a delivery of an event that was published late', async () => {
  const client = asNewTenant();
  const webhook = await register(client, '/late');
  await createJob(client);
  const { id, createdAt } = await waitForDelivery(client, webhook.id);
  const listed = async (query: string) =>
    (await client.get<Page<DeliveryRecord>>(`/api/deliveries?${query}`).expect(200)).items.length;
  const later = (minutes: number) =>
    new Date(Date.parse(createdAt) + minutes * 60_000).toISOString();
  await fixture.app.deps
    .db('deliveries')
    .where({ id })
    .update({ created_at: later(10) });
  expect(await listed(`createdAt.gte=${later(10)}`)).toBe(1);
  expect(await listed(`createdAt.gt=${later(10)}`)).toBe(0);
  expect(await listed(`createdAt.lte=${later(10)}`)).toBe(1);
  expect(await listed(`createdAt.lt=${later(10)}`)).toBe(0);
});

test('redirects are not followed', async () => {
  const client = asNewTenant();
  fixture.sink.respond('/moved', respondWith(307, { location: fixture.sink.url('/elsewhere') }));
  const webhook = await register(client, '/moved', { retryPolicy: { maxAttempts: 1 } });
  await createJob(client);
  expect(await waitForDelivery(client, webhook.id)).toMatchObject({
    status: 'failed',
    attempts: [{ httpStatus: 307, error: { code: 'http_status' } }],
  });
  expect(fixture.sink.requestsTo('/elsewhere')).toEqual([]);
});

test('the first 4 KiB of an endless response are kept', async () => {
  const client = asNewTenant();
  fixture.sink.respond('/endless', (_request, response) => {
    response.writeHead(200);
    const more = () => {
      while (!response.destroyed && response.write('x'.repeat(1_024)));
    };
    response.on('drain', more);
    more();
  });
  const webhook = await register(client, '/endless');
  await createJob(client);
  const delivery = await waitForDelivery(client, webhook.id);
  // Lists show less, so that a page stays small.
  expect(delivery).toMatchObject({
    status: 'succeeded',
    attempts: [{ responseBody: 'x'.repeat(200), responseTruncated: true }],
  });
  const read = await client.get<DeliveryRecord>(`/api/deliveries/${delivery.id}`).expect(200);
  expect(read.attempts).toMatchObject([
    { responseBody: 'x'.repeat(4_096), responseTruncated: true },
  ]);
});

test('nothing is sent to an internal address, whatever its name', async () => {
  const strict = await startApp({ HOLDFAST_OUTBOUND_ALLOW: '' });
  try {
    const client = strict.client.as({ tenant: 'inside' });
    const endpointUrl = fixture.sink.url('/inside');
    const webhook = await client
      .post<WebhookRecord>('/api/webhooks', {
        endpointUrl: endpointUrl.replace('127.0.0.1', 'localhost'),
        eventTypes: ['job.created'],
        ...fastRetries,
      })
      .expect(201);
    await createJob(client);
    expect(await waitForDeliveries(client, webhook.id, allFinished(1))).toMatchObject([
      { status: 'failed', reason: 'address_not_allowed', attemptCount: 3 },
    ]);
    expect(fixture.sink.requestsTo('/inside')).toEqual([]);
    const refusal = await client
      .post<ProblemBody>('/api/webhooks', { endpointUrl, eventTypes: ['*'] })
      .expect(400);
    expect(refusal.errors?.[0]?.code).toBe('address_not_allowed');
  } finally {
    await strict.stop();
  }
  await asNewTenant().get('/api/webhooks').expect(200);
});
