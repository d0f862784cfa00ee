import { expect, test } from '@jest/globals';
import type { EventList, EventWithDeliveries } from '../../../api/events/schemas.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { WebhookRecord } from '../../../api/webhooks/schemas.ts';
import type { TestClient } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import { respondWith } from '../../support/sink.ts';
import { allFinished, withWebhookReceiver } from '../../support/webhooks.ts';

const {
  fixture,
  asNewTenant,
  register,
  createJob,
  readWebhook,
  waitForDeliveries,
  waitForDelivery,
  patchRow,
} = withWebhookReceiver();

const daysAgo = (count: number) => new Date(Date.now() - count * 86_400_000);

test('410 disables the webhook, emits an event and cancels pending deliveries', async () => {
  const client = asNewTenant();
  fixture.sink.respond('/removed', (_request, response, nth) =>
    response.writeHead(nth === 1 ? 500 : 410).end(),
  );
  await register(client, '/watcher', { eventTypes: ['webhook.disabled'] });
  const webhook = await register(client, '/removed', {
    retryPolicy: { maxIntervalSeconds: 3_600 },
  });
  await createJob(client);
  const waiting = await waitForDelivery(
    client,
    webhook.id,
    ([first]) => first?.attempts[0]?.httpStatus === 500,
  );
  await createJob(client);
  const deliveries = await waitForDeliveries(client, webhook.id, allFinished(2));
  expect(deliveries.map(({ status, reason }) => [status, reason])).toEqual([
    ['failed', 'endpoint_removed'],
    ['cancelled', 'webhook_endpoint_removed'],
  ]);
  expect(await readWebhook(client, webhook.id)).toMatchObject({
    enabled: false,
    disabledReason: 'endpoint_removed',
  });
  const [message] = await eventually(
    () => fixture.sink.bodiesTo('/watcher'),
    (bodies) => bodies.length > 0,
  );
  expect(message).toMatchObject({
    type: 'webhook.disabled',
    data: { webhookId: webhook.id, reason: 'endpoint_removed' },
  });
  const job = await client.get<JobRecord>(`/api/jobs/${waiting.jobId}`).expect(200);
  expect(job.status).toBe('cancelled');
});

/** Registers a webhook whose endpoint answers attempt `nth` only when the URL was changed. */
async function changeUrlDuring(client: TestClient, path: string, nth: number) {
  let answer: () => void = () => undefined;
  fixture.sink.respond(path, (_request, response, n) => {
    if (n < nth) response.writeHead(500).end();
    else answer = () => void response.writeHead(410).end();
  });
  const webhook = await register(client, path, { retryPolicy: { maxIntervalSeconds: 0.05 } });
  await createJob(client);
  await eventually(
    () => fixture.sink.requestsTo(path),
    (all) => all.length === nth,
  );
  await client
    .put(`/api/webhooks/${webhook.id}`, { endpointUrl: fixture.sink.url(`${path}-new`) })
    .expect(200);
  answer();
  return webhook;
}

// The first attempt has no workflow, the second one has.
test.each([1, 2])('a 410 of an earlier endpoint in attempt %i changes nothing', async (nth) => {
  const client = asNewTenant();
  const path = `/moved-${nth}`;
  const webhook = await changeUrlDuring(client, path, nth);
  const failed = await waitForDelivery(client, webhook.id);
  expect(failed).toMatchObject({ status: 'failed', reason: 'endpoint_removed' });
  expect(await readWebhook(client, webhook.id)).toMatchObject({
    enabled: true,
    failingSince: null,
  });
  await createJob(client);
  await eventually(
    () => fixture.sink.requestsTo(`${path}-new`),
    (all) => all.length === 1,
  );
});

const listedIds = async (client: TestClient, query: string): Promise<string[]> =>
  (await client.get<{ items: { id: string }[] }>(`/api/webhooks?${query}`).expect(200)).items.map(
    ({ id }) => id,
  );

test('five days of failures disable the webhook, unless an attempt succeeds', async () => {
  const client = asNewTenant();
  fixture.sink.respond('/failing', respondWith(500));
  const webhook = await register(client, '/failing', { retryPolicy: { maxAttempts: 1 } });
  await patchRow(webhook.id, { failing_since: daysAgo(4.9) });
  await createJob(client);
  await waitForDeliveries(client, webhook.id, allFinished(1));
  expect((await readWebhook(client, webhook.id)).enabled).toBe(true);
  const now = new Date().toISOString();
  expect(await listedIds(client, `failingSince.lte=${now}`)).toEqual([webhook.id]);

  await patchRow(webhook.id, { failing_since: daysAgo(5.1) });
  await createJob(client);
  await waitForDeliveries(client, webhook.id, allFinished(2));
  const disabled = await eventually(
    () => readWebhook(client, webhook.id),
    ({ enabled }) => !enabled,
  );
  expect(disabled.disabledReason).toBe('failing');
  expect(await listedIds(client, 'disabledReason=failing,endpoint_removed')).toEqual([webhook.id]);
  const enabled = await client
    .put<WebhookRecord>(`/api/webhooks/${webhook.id}`, { enabled: true })
    .expect(200);
  expect(enabled).toMatchObject({ enabled: true, disabledReason: null, failingSince: null });

  fixture.sink.respond('/failing', respondWith(200));
  await patchRow(webhook.id, { failing_since: daysAgo(5.1) });
  await createJob(client);
  await eventually(
    () => readWebhook(client, webhook.id),
    ({ failingSince }) => failingSince === null,
  );
  expect((await readWebhook(client, webhook.id)).enabled).toBe(true);
  expect(await listedIds(client, `failingSince.lte=${now}`)).toEqual([]);
});

test('disabling or deleting a webhook cancels its pending deliveries with that reason', async () => {
  const client = asNewTenant();
  const { db } = fixture.app.deps;
  fixture.sink.respond('/waiting', respondWith(503, { 'retry-after': '600' }));
  const webhook = await register(client, '/waiting');
  await Promise.all(Array.from({ length: 12 }, () => createJob(client)));
  await waitForDeliveries(
    client,
    webhook.id,
    (all) => all.length === 12 && all.filter(({ attemptCount }) => attemptCount > 0).length >= 5,
  );
  await client.put(`/api/webhooks/${webhook.id}`, { enabled: false }).expect(200);
  const deliveries = await waitForDeliveries(client, webhook.id, allFinished(12));
  expect(new Set(deliveries.map(({ status, reason }) => `${status} ${reason}`))).toEqual(
    new Set(['cancelled webhook_disabled']),
  );
  await eventually(
    () => db('webhooks').where({ id: webhook.id, cancel_before: null }).pluck('id'),
    (ids) => ids.length === 1,
  );

  await client.put(`/api/webhooks/${webhook.id}`, { enabled: true }).expect(200);
  const job = await createJob(client);
  const { items } = await client
    .get<EventList>(`/api/events?subject=${job.id}&type=job.created`)
    .expect(200);
  await waitForDeliveries(client, webhook.id, (all) => all.length === 13);
  await client.delete(`/api/webhooks/${webhook.id}`).expect(204);
  const { deliveries: remaining } = await eventually(
    () => client.get<EventWithDeliveries>(`/api/events/${items[0]?.id}`).expect(200),
    ({ deliveries: [delivery] }) => delivery?.status === 'cancelled',
  );
  expect(remaining[0]?.reason).toBe('webhook_deleted');
});

test('cancelling the job of a delivery cancels the delivery', async () => {
  const client = asNewTenant();
  fixture.sink.respond('/cancelled', respondWith(500));
  const webhook = await register(client, '/cancelled');
  await createJob(client);
  const waiting = await waitForDelivery(
    client,
    webhook.id,
    ([first]) => first?.attempts[0]?.httpStatus === 500,
  );
  await client.post(`/api/jobs/${waiting.jobId}/cancel`).expect(202);
  expect(await waitForDelivery(client, webhook.id)).toMatchObject({ status: 'cancelled' });
});
