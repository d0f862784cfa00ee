import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { publishEvents } from '../../../db/events/publish.ts';
import type { Knex } from '../../../db/core/knex.ts';
import { createIds } from '../../../platform/ids.ts';
import { startApp, type TestApp } from '../../support/app.ts';

const HOUR_MS = 3_600_000;
const ENABLED = { enabled: true, disabled_at: null, disabled_reason: null };
const DISABLED = { enabled: false, disabled_at: new Date(), disabled_reason: 'request' };

let app: TestApp;
let db: Knex;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
  db = app.deps.db;
});
afterAll(() => app.stop());
afterEach(async () => {
  await db('webhooks').update(DISABLED);
  while ((await publish(1_000)).areLeft);
});

const ids = createIds();
let tenants = 0;
const newTenant = () => `fan-out${tenants++}`;

/** Inserts enabled webhooks on all events. Returns their ids. */
async function subscribe(tenantId: string, count: number, eventTypes = ['*']): Promise<string[]> {
  const now = new Date();
  const rows = Array.from({ length: count }, () => ({
    id: ids.next('whk'),
    tenant_id: tenantId,
    endpoint_url: 'https://example.net/',
    description: '',
    event_types: eventTypes,
    enabled: true,
    retry_policy: '{}',
    secret: '',
    enabled_at: now,
    created_by: 'alice',
    created_at: now,
    updated_at: now,
  }));
  await db.batchInsert('webhooks', rows, 1_000);
  return rows.map(({ id }) => id);
}

/** Inserts events without a sequence. Returns their ids. */
async function emit(
  tenantId: string,
  count: number,
  { trx = db, ageMs = 0 }: { trx?: Knex; ageMs?: number } = {},
): Promise<string[]> {
  const now = new Date(Date.now() - ageMs);
  const rows = Array.from({ length: count }, () => ({
    id: ids.next('evt'),
    type: 'webhook.deleted',
    tenant_id: tenantId,
    subject_type: 'webhook',
    subject_id: 'whk_x',
    actor_id: 'alice',
    data: JSON.stringify({
      webhookId: 'whk_x',
      endpointOrigin: 'https://example.net',
      eventTypes: ['job.failed'],
      enabled: false,
    }),
    created_at: now,
  }));
  await trx.batchInsert('events', rows, 1_000);
  return rows.map(({ id }) => id);
}

const publish = (maxDeliveries: number, limit = 500) => publishEvents(db, { limit, maxDeliveries });
const deliveriesOf = (tenantId: string) =>
  db('deliveries')
    .where({ tenant_id: tenantId })
    .orderBy(['event_id', 'webhook_id'])
    .select('webhook_id', 'event_id');

/** Publishes until nothing is left. Returns how many deliveries each batch has added. */
async function publishAll(maxDeliveries: number): Promise<number[]> {
  const added: number[] = [];
  for (let left = true; left;) {
    const { deliveries, areLeft, types } = await publish(maxDeliveries);
    added.push(deliveries);
    left = areLeft || types.length > 0;
  }
  return added;
}

describe('a batch', () => {
  test('adds a bounded number of deliveries, each once, in the order of events', async () => {
    const tenant = newTenant();
    const webhooks = await subscribe(tenant, 30);
    const events = await emit(tenant, 20);
    expect(await publish(70)).toMatchObject({ deliveries: 70, areLeft: true });
    expect(await db('events').whereIn('id', events).whereNull('sequence')).toEqual([]);
    const first = await deliveriesOf(tenant);
    expect(new Set(first.map((row) => row.event_id as string))).toEqual(
      new Set(events.slice(0, 3)),
    );
    // Events that follow wait behind those before.
    const later = await emit(tenant, 1);
    expect(Math.max(...(await publishAll(70)))).toBe(70);
    const pairs = (await deliveriesOf(tenant)).map((row) => `${row.event_id} ${row.webhook_id}`);
    const expected = [...events, ...later].flatMap((event) =>
      webhooks.map((webhook) => `${event} ${webhook}`),
    );
    expect(pairs.toSorted()).toEqual(expected.toSorted());
  });

  test('adds a part of the deliveries of an event with thousands of webhooks', async () => {
    const tenant = newTenant();
    const webhooks = await subscribe('platform', 5_000);
    await emit(tenant, 1);
    const added = await publishAll(1_000);
    expect(added.filter((count) => count > 0)).toEqual(Array.from({ length: 5 }, () => 1_000));
    const rows = await db('deliveries').whereIn('webhook_id', webhooks).select('webhook_id');
    expect(new Set(rows.map((row) => row.webhook_id as string)).size).toBe(5_000);
  });

  test('serves a quiet tenant beside one with a hundred webhooks and many events', async () => {
    const [busy, quiet] = [newTenant(), newTenant()];
    await subscribe(busy, 100);
    await subscribe(quiet, 1);
    await emit(busy, 1_200);
    const [event] = await emit(quiet, 1);
    let batches = 0;
    let ofQuiet: object[] = [];
    while (ofQuiet.length === 0 && batches < 20) {
      await publish(50);
      batches += 1;
      ofQuiet = await deliveriesOf(quiet);
    }
    // Three batches publish the events before, whatever deliveries these have.
    expect({ batches, ofQuiet }).toMatchObject({ batches: 3, ofQuiet: [{ event_id: event }] });
    expect((await deliveriesOf(busy)).length).toBeLessThanOrEqual(150);
  });

  test('serves tenants in turn when there are more than deliveries', async () => {
    const all = Array.from({ length: 5 }, newTenant);
    for (const tenant of all) {
      await subscribe(tenant, 2);
      await emit(tenant, 2);
    }
    const counts = async () =>
      Promise.all(all.map(async (tenant) => (await deliveriesOf(tenant)).length));
    await publish(5);
    expect(await counts()).toEqual([1, 1, 1, 1, 1]);
    await publish(5);
    expect(await counts()).toEqual([2, 2, 2, 2, 2]);
  });

  test('of a process of version 0.2 does the same', async () => {
    await subscribe('platform', 3_000);
    await emit(newTenant(), 1);
    const published = async () =>
      (
        await db.raw<{ rows: object[] }>(
          'SELECT cardinality(types) AS events, delivery_count AS deliveries FROM publish_events(200, NULL, now())',
        )
      ).rows[0];
    expect(await published()).toEqual({ events: 1, deliveries: 2_000 });
    expect(await published()).toEqual({ events: 0, deliveries: 1_000 });
  });
});

describe('a reader', () => {
  test('waits for the sequences of its events, and for no deliveries', async () => {
    const tenant = newTenant();
    await subscribe(tenant, 3);
    const [event] = await emit(tenant, 1);
    await app.deps.relay.flush();
    expect(await db('events').where({ id: event }).first('sequence')).toEqual({
      sequence: expect.any(Number),
    });
    expect(await deliveriesOf(tenant)).toEqual([]);
    expect(await publish(0)).toEqual({ types: [], deliveries: 0, areLeft: false });
    const trx = await db.transaction();
    try {
      // As a process that adds deliveries. A reader would wait for it, and fail.
      await trx('event_head').forUpdate();
      await publishEvents(db, { limit: 1, maxDeliveries: 0, lockTimeoutMs: 1 });
    } finally {
      await trx.rollback();
    }
    expect(await publish(1_000)).toMatchObject({ deliveries: 3, areLeft: false });
  });
});

describe('a webhook', () => {
  test('that is locked holds up neither events nor the deliveries of other tenants', async () => {
    const [tenant, other] = [newTenant(), newTenant()];
    const [free, locked, behind] = await subscribe(tenant, 3);
    await subscribe(other, 1);
    const trx = await db.transaction();
    await trx('webhooks').where({ id: locked }).forUpdate();
    await emit(tenant, 1);
    await emit(other, 1);
    expect(await publish(100)).toMatchObject({ deliveries: 2, areLeft: true });
    expect(await publish(100)).toEqual({ types: [], deliveries: 0, areLeft: true });
    expect(await deliveriesOf(tenant)).toMatchObject([{ webhook_id: free }]);
    expect(await deliveriesOf(other)).toHaveLength(1);
    await trx.commit();
    expect(await publish(100)).toMatchObject({ deliveries: 2, areLeft: false });
    const rows = await deliveriesOf(tenant);
    expect(rows.map((row) => row.webhook_id as string)).toEqual([free, locked, behind]);
  });

  test('that is disabled gets no more deliveries of events that are published', async () => {
    const tenant = newTenant();
    const [first, second] = await subscribe(tenant, 2);
    await emit(tenant, 2);
    await publish(1);
    await db('webhooks').where({ id: second }).update(DISABLED);
    await publishAll(10);
    expect((await deliveriesOf(tenant)).map((row) => row.webhook_id as string)).toEqual([
      first,
      first,
    ]);
  });

  test('gets a delivery once that a replay has queued before', async () => {
    const tenant = newTenant();
    const [, second] = await subscribe(tenant, 2);
    const [event] = await emit(tenant, 1);
    await publish(1);
    const now = new Date();
    await db('deliveries').insert({
      id: ids.next('dlv'),
      tenant_id: tenant,
      webhook_id: second,
      event_id: event,
      status: 'pending',
      queued_at: now,
      created_at: now,
      updated_at: now,
    });
    expect(await publish(10)).toEqual({ types: [], deliveries: 0, areLeft: false });
    expect(await deliveriesOf(tenant)).toHaveLength(2);
  });

  test('gets the events of a transaction that began long before it was created or enabled', async () => {
    const [created, enabled] = [newTenant(), newTenant()];
    const [second] = await subscribe(enabled, 1);
    await db('webhooks').where({ id: second }).update(DISABLED);
    const trx = await db.transaction();
    await emit(created, 1, { trx, ageMs: HOUR_MS });
    await emit(enabled, 1, { trx, ageMs: HOUR_MS });
    const [first] = await subscribe(created, 1);
    await db('webhooks').where({ id: second }).update(ENABLED);
    await trx.commit();
    await publishAll(10);
    expect(await deliveriesOf(created)).toMatchObject([{ webhook_id: first }]);
    expect(await deliveriesOf(enabled)).toMatchObject([{ webhook_id: second }]);
  });

  test('gets no event that was published before it was created or enabled, whatever the clock of its process', async () => {
    const tenant = newTenant();
    const [first, second] = await subscribe(tenant, 2);
    await db('webhooks').where({ id: second }).update(DISABLED);
    await emit(tenant, 1, { ageMs: -HOUR_MS });
    await publish(0);
    await db('webhooks').where({ id: second }).update(ENABLED);
    await subscribe(tenant, 1);
    await publishAll(10);
    expect(await deliveriesOf(tenant)).toMatchObject([{ webhook_id: first }]);
  });

  test('that was enabled before sequences were stored gets the events created since', async () => {
    const tenant = newTenant();
    const [webhook] = await subscribe(tenant, 1);
    await db('webhooks').where({ id: webhook }).update({ enabled_sequence: null });
    await emit(tenant, 1, { ageMs: HOUR_MS });
    const [event] = await emit(tenant, 1);
    await publishAll(10);
    expect(await deliveriesOf(tenant)).toEqual([{ webhook_id: webhook, event_id: event }]);
  });
});
