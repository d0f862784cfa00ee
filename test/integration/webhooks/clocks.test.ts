import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Knex } from '../../../db/core/knex.ts';
import { findCancellableDeliveries } from '../../../db/webhooks/deliveryQueue.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { withClockAhead } from '../../support/clock.ts';
import { publishWithDeliveries } from '../../support/publishEvents.ts';

const HOUR_MS = 3_600_000;

let app: TestApp;
let db: Knex;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
  db = app.deps.db;
});
afterAll(() => app.stop());

test('a process whose clock is ahead cancels no delivery that is queued after it has enabled a webhook again', async () => {
  const client = app.client.as({ tenant: 'ahead' });
  const createJob = () => client.post('/api/jobs', { type: 'core.echo', payload: {} }).expect(201);
  const { id } = await client
    .post<{ id: string }>('/api/webhooks', {
      endpointUrl: 'https://example.net/',
      eventTypes: ['job.created'],
    })
    .expect(201);
  await createJob();
  await publishWithDeliveries(db);
  const before: string[] = await db('deliveries').where({ webhook_id: id }).pluck('id');
  const enable = (enabled: boolean) => client.put(`/api/webhooks/${id}`, { enabled }).expect(200);
  await withClockAhead(HOUR_MS, () => enable(false));
  await enable(true);
  await createJob();
  await publishWithDeliveries(db);
  expect(await db('deliveries').where({ webhook_id: id })).toHaveLength(2);
  const cancelled = await findCancellableDeliveries(db, id, 10);
  expect(cancelled.map((delivery) => delivery.id)).toEqual(before);
});

test('nor one that was queued before, by a process whose clock is ahead, goes on', async () => {
  const client = app.client.as({ tenant: 'queued' });
  const { id } = await client
    .post<{ id: string }>('/api/webhooks', {
      endpointUrl: 'https://example.net/',
      eventTypes: ['job.created'],
    })
    .expect(201);
  await client.post('/api/jobs', { type: 'core.echo', payload: {} }).expect(201);
  await withClockAhead(HOUR_MS, () => publishWithDeliveries(db));
  await client.put(`/api/webhooks/${id}`, { enabled: false }).expect(200);
  await client.put(`/api/webhooks/${id}`, { enabled: true }).expect(200);
  expect(await findCancellableDeliveries(db, id, 10)).toHaveLength(1);
});
