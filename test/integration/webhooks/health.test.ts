import { expect, test } from '@jest/globals';
import { writeHealth, type WebhookHealth } from '../../../db/webhooks/health.ts';
import { startAppOn } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { withWebhookReceiver } from '../../support/webhooks.ts';

const { fixture, asNewTenant, register, readWebhook, waitForDelivery, createJob, patchRow } =
  withWebhookReceiver();
const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000);
const NO_SIGNS = { succeededAt: null, failedAt: null, answeredAt: null, unansweredAt: null };
const columnsOf = (id: string) =>
  fixture.app.deps
    .db('webhooks')
    .where({ id })
    .first('failing_since', 'unreachable_since', 'probed_at');

test('a webhook fails since the first failure after the last success at its present endpoint', async () => {
  const client = asNewTenant();
  const { id, endpointUrl } = await register(client, '/health', { enabled: false });
  const failingSince = async () => (await readWebhook(client, id)).failingSince;
  const [first, second, third] = [daysAgo(3), daysAgo(2), daysAgo(1)];
  const write = (signs: { succeededAt?: Date; failedAt?: Date }, url = endpointUrl) =>
    writeHealth(fixture.app.deps.db, [{ ...NO_SIGNS, webhookId: id, endpointUrl: url, ...signs }]);

  await write({ failedAt: first }, `${endpointUrl}/earlier`);
  expect(await failingSince()).toBeNull();
  await write({ failedAt: second });
  await write({ failedAt: third });
  expect(await failingSince()).toBe(second.toISOString());
  // What others have written since, counts: this was recorded late.
  await write({ succeededAt: first });
  await write({ succeededAt: third }, `${endpointUrl}/earlier`);
  expect(await failingSince()).toBe(second.toISOString());
  await write({ failedAt: first });
  expect(await failingSince()).toBe(first.toISOString());
  await write({ succeededAt: second, failedAt: third });
  expect(await failingSince()).toBe(third.toISOString());
  await write({ succeededAt: new Date() });
  expect(await failingSince()).toBeNull();
});

test('a webhook is unreachable since the first attempt without a usable answer after the last with one', async () => {
  const { id, endpointUrl } = await register(asNewTenant(), '/unreachable', { enabled: false });
  const [first, second, third] = [daysAgo(3), daysAgo(2), daysAgo(1)];
  const write = (signs: Partial<WebhookHealth>) =>
    writeHealth(fixture.app.deps.db, [{ ...NO_SIGNS, webhookId: id, endpointUrl, ...signs }]);

  await write({ failedAt: second, unansweredAt: second });
  await write({ failedAt: third, unansweredAt: third });
  await patchRow(id, { probed_at: third });
  const failing = { failing_since: second, unreachable_since: second };
  expect(await columnsOf(id)).toEqual({ ...failing, probed_at: third });
  // Recorded late, and a test, which only says that it has answered.
  await write({ answeredAt: first });
  expect(await columnsOf(id)).toEqual({ ...failing, probed_at: third });
  await write({ answeredAt: third });
  const reachable = { failing_since: second, unreachable_since: null };
  expect(await columnsOf(id)).toEqual({ ...reachable, probed_at: null });
  // One that is probed for another reason stays so.
  await patchRow(id, { probed_at: third });
  await write({ failedAt: third, answeredAt: third });
  expect(await columnsOf(id)).toEqual({ ...reachable, probed_at: third });
  await write({ succeededAt: new Date(), answeredAt: new Date() });
  expect(await columnsOf(id)).toMatchObject({ failing_since: null, unreachable_since: null });
});

test('an endpoint is unreachable from an outage until it answers: to an attempt, a redelivery or a test', async () => {
  const client = asNewTenant();
  let status = 503;
  fixture.sink.respond('/outage', (_request, response) => response.writeHead(status).end());
  const webhook = await register(client, '/outage', { retryPolicy: { maxAttempts: 1 } });
  const until = async (isUnreachable: boolean) =>
    eventually(
      () => columnsOf(webhook.id),
      (row) => row?.failing_since !== null && (row?.unreachable_since !== null) === isUnreachable,
    );
  await createJob(client);
  await until(true);
  const { id } = await waitForDelivery(client, webhook.id);
  status = 400;
  await client.post(`/api/webhooks/${webhook.id}/test`).expect(200);
  await until(false);
  status = 429;
  await client.post(`/api/deliveries/${id}/redeliver`);
  await until(true);
  await waitForDelivery(client, webhook.id);
  status = 422;
  await client.post(`/api/deliveries/${id}/redeliver`);
  await until(false);
  await waitForDelivery(client, webhook.id);
  status = 500;
  await createJob(client);
  await until(true);
  await patchRow(webhook.id, { probed_at: new Date() });
  const endpointUrl = fixture.sink.url('/outage/other');
  await client.put(`/api/webhooks/${webhook.id}`, { endpointUrl }).expect(200);
  const fresh = { failing_since: null, unreachable_since: null, probed_at: null };
  expect(await columnsOf(webhook.id)).toEqual(fresh);
});

test('an endpoint that answers a test is reachable, also if the process serves only the API', async () => {
  const { app } = fixture;
  const { id } = await register(asNewTenant(), '/tested', { enabled: false });
  await patchRow(id, { failing_since: daysAgo(1), unreachable_since: daysAgo(1) });
  const api = await startAppOn(app.databaseUrl, { ...app.env, HOLDFAST_ROLE: 'api' });
  try {
    await api.client.as({ tenant: 'platform' }).post(`/api/webhooks/${id}/test`).expect(200);
    await eventually(
      () => columnsOf(id),
      (row) => row?.unreachable_since === null,
    );
  } finally {
    await api.stop();
  }
});

test('a webhook that another transaction has locked is written later, and the others now', async () => {
  const client = asNewTenant();
  const { db } = fixture.app.deps;
  const webhooks = await Promise.all(
    ['a', 'b'].map((name) => register(client, `/locked/${name}`, { enabled: false })),
  );
  const health = webhooks.map(({ id, endpointUrl }) => {
    return { ...NO_SIGNS, webhookId: id, endpointUrl, failedAt: daysAgo(1) };
  });
  const [locked, other] = webhooks.map(({ id }) => id);
  const failing = async () =>
    (
      await client
        .get<{ items: { id: string }[] }>('/api/webhooks?failingSince.lte=9999-01-01T00:00:00Z')
        .expect(200)
    ).items.map(({ id }) => id);
  await db.transaction(async (trx) => {
    await trx('webhooks')
      .where({ id: String(locked) })
      .forUpdate();
    expect(await writeHealth(db, health)).toEqual(new Set([locked]));
    expect(await failing()).toEqual([other]);
  });
  expect(await writeHealth(db, health)).toEqual(new Set());
  expect(await failing()).toHaveLength(2);
});

test('deliveries end while a restore has locked the webhooks, and their health is written after it', async () => {
  const client = asNewTenant();
  const { db } = fixture.app.deps;
  // Both kinds of attempts: the first one, and that of a workflow.
  let failFirst: () => void = () => undefined;
  fixture.sink.respond('/during-restore', (_request, response, nth) => {
    if (nth === 1) failFirst = () => void response.writeHead(500).end();
    else response.writeHead(200).end();
  });
  const webhook = await register(client, '/during-restore', {
    retryPolicy: { maxIntervalSeconds: 1 },
  });
  const trx = await db.transaction();
  try {
    await createJob(client);
    await eventually(
      () => fixture.sink.requestsTo('/during-restore').length,
      (count) => count === 1,
    );
    await patchRow(webhook.id, { failing_since: daysAgo(1) });
    await trx.raw('LOCK TABLE webhooks IN EXCLUSIVE MODE');
    failFirst();
    const delivery = await waitForDelivery(client, webhook.id);
    expect(delivery).toMatchObject({ status: 'succeeded', attemptCount: 2 });
  } finally {
    await trx.commit();
  }
  await eventually(
    () => readWebhook(client, webhook.id),
    ({ failingSince }) => failingSince === null,
  );
  expect(fixture.sink.requestsTo('/during-restore')).toHaveLength(2);
});

test('a webhook is not disabled for a time that a success has ended unnoticed', async () => {
  const client = asNewTenant();
  fixture.sink.respond('/unnoticed', (_request, response, nth) =>
    response.writeHead(nth === 1 ? 200 : 500).end(),
  );
  const webhook = await register(client, '/unnoticed', { retryPolicy: { maxAttempts: 1 } });
  await createJob(client);
  await waitForDelivery(client, webhook.id);
  // As if the process had died between the outcome and the health.
  await patchRow(webhook.id, { failing_since: daysAgo(6) });
  await createJob(client);
  await waitForDelivery(client, webhook.id, ([newest]) => newest?.status === 'failed');
  // It fails since then, and is disabled five days later.
  const { enabled } = await eventually(
    () => readWebhook(client, webhook.id),
    ({ failingSince }) => failingSince !== null && new Date(failingSince) > daysAgo(1),
  );
  expect(enabled).toBe(true);
});
