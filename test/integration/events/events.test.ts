import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { EventList, EventRecord, EventWithDeliveries } from '../../../api/events/schemas.ts';
import type { WebhookRecord } from '../../../api/webhooks/schemas.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { publishEvents } from '../../../db/events/publish.ts';
import { openDatabase, type Knex } from '../../../db/core/knex.ts';
import { createIds } from '../../../platform/ids.ts';
import { createLog } from '../../../platform/log.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { createDatabase } from '../../support/database.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
});
afterAll(() => app.stop());

let tenants = 0;
const asNewTenant = (): TestClient => app.client.as({ tenant: `e${tenants++}` });
const disabledWebhook = {
  endpointUrl: 'https://example.net/',
  eventTypes: ['job.failed'],
  enabled: false,
};
/** Emits one event; returns the id of its subject, a webhook. */
const emitEvent = async (client: TestClient) =>
  (await client.post<WebhookRecord>('/api/webhooks', disabledWebhook).expect(201)).id;
const list = (client: TestClient, query = '') =>
  client.get<EventList>(`/api/events${query}`).expect(200);
const subjectIds = ({ items }: EventList) => items.map(({ subject }) => subject.id);

describe('the list of events', () => {
  test('contains what was committed before the request, newest first, in pages', async () => {
    const client = asNewTenant();
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) ids.unshift(await emitEvent(client));
    const all = await list(client);
    expect(subjectIds(all)).toEqual(ids);
    expect(all.items[0]).toEqual({
      id: expect.stringMatching(/^evt_/),
      sequence: expect.any(Number),
      type: 'webhook.created',
      tenantId: expect.stringMatching(/^e\d/),
      subject: { type: 'webhook', id: ids[0] },
      actorId: 'alice',
      createdAt: expect.any(String),
      data: {
        webhookId: ids[0],
        endpointOrigin: 'https://example.net',
        eventTypes: ['job.failed'],
        enabled: false,
      },
    });
    const first = await list(client, '?limit=2');
    const second = await list(client, `?limit=2&cursor=${first.nextCursor}`);
    const third = await list(client, `?limit=2&cursor=${second.nextCursor}`);
    expect([...first.items, ...second.items, ...third.items]).toEqual(all.items);
    expect(third.nextCursor).toBeNull();
  });

  test('after a sequence is oldest first, and reports up to where it is complete', async () => {
    const client = asNewTenant();
    const start = (await list(client)).lastSequence;
    const ids = [await emitEvent(client), await emitEvent(client), await emitEvent(client)];
    const page = await list(client, `?after=${start}&limit=2`);
    expect(subjectIds(page)).toEqual(ids.slice(0, 2));
    expect(page.lastSequence).toBe(page.items[1]?.sequence);
    const rest = await list(client, `?after=${page.lastSequence}&limit=2`);
    expect(subjectIds(rest)).toEqual(ids.slice(2));
    const last = assertDefined(rest.items[0], 'the last event').sequence;
    expect(rest.nextCursor).toBeNull();
    expect((await list(client, `?after=${start}&limit=2&cursor=${page.nextCursor}`)).items).toEqual(
      rest.items,
    );
    // A follower advances over the events that its scope excludes.
    await emitEvent(asNewTenant());
    const none = await list(client, `?after=${last}`);
    expect(none.items).toEqual([]);
    expect(none.lastSequence).toBeGreaterThan(last);
  });

  test('filters by type, subject and time', async () => {
    const client = asNewTenant();
    const id = await emitEvent(client);
    await client.put(`/api/webhooks/${id}`, { description: 'x' }).expect(200);
    await emitEvent(client);
    const types = async (query: string) =>
      (await list(client, query)).items.map(({ type }) => type);
    expect(await types('?type=webhook.updated')).toEqual(['webhook.updated']);
    expect(await types('?type=webhook.updated&type=job.created')).toEqual(['webhook.updated']);
    expect(await types(`?subject=${id}`)).toEqual(['webhook.updated', 'webhook.created']);
    expect(await types(`?subject=webhook:${id}&after=0`)).toEqual([
      'webhook.created',
      'webhook.updated',
    ]);
    expect(await types(`?subject=job:${id}`)).toEqual([]);
    const [, middle] = (await list(client)).items;
    expect(await types(`?since=${middle?.createdAt}`)).toHaveLength(2);
    expect(await types(`?until=${middle?.createdAt}`)).toHaveLength(1);
    expect(await types(`?since=${new Date(Date.now() + 3_600_000).toISOString()}`)).toEqual([]);
    expect(await types('?until=2020-01-01T00:00:00Z&after=0')).toEqual([]);
  });

  test.each([
    ['an unknown type', '?type=job.exploded'],
    ['a bad sequence', '?after=-1'],
    ['a bad time', '?since=yesterday'],
    ['garbage as a cursor', '?cursor=xyz'],
    ['a subject without an id', '?subject=job:'],
    ['an unknown parameter', '?kind=job'],
  ])('refuses %s', async (_what, query) => {
    await asNewTenant().get(`/api/events${query}`).expect(400);
  });

  test('refuses the cursor of the other order', async () => {
    const client = asNewTenant();
    await emitEvent(client);
    await emitEvent(client);
    const { nextCursor } = await list(client, '?limit=1');
    await client.get(`/api/events?after=0&cursor=${nextCursor}`).expect(400);
  });

  test('contains only the events of the tenant', async () => {
    const [one, other] = [asNewTenant(), asNewTenant()];
    const id = await emitEvent(one);
    const [event] = (await list(one)).items;
    expect((await list(other, `?subject=${id}`)).items).toEqual([]);
    await other.get(`/api/events/${event?.id}`).expect(404);
    const platform = app.client.as({ tenant: 'platform' });
    expect((await list(platform, `?subject=${id}`)).items).toHaveLength(1);
    expect(
      await platform.get<EventWithDeliveries>(`/api/events/${event?.id}`).expect(200),
    ).toMatchObject({ id: event?.id, deliveries: [] });
    await app.client.as({ tenant: 'e0', roles: 'nobody' }).get('/api/events').expect(403);
  });
});

/**
 * Writers commit in any order, publishers run on several connections, and followers read: none of
 * them may ever see an event appear before its position.
 */
test('followers of the log miss no event of concurrent writers', async () => {
  const WRITERS = 16;
  const EVENTS_PER_WRITER = 40;
  const database = await createDatabase();
  const open = (): Knex =>
    openDatabase({
      url: database.url,
      poolSize: 10,
      statementTimeoutMs: 0,
      log: createLog('silent', false),
    });
  const pools = [open(), open(), open()];
  const [db, other, reading] = pools as [Knex, Knex, Knex];
  const ids = createIds();
  let writing = true;
  const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

  const writer = async (n: number) => {
    for (let i = 0; i < EVENTS_PER_WRITER; i++) {
      // The id, which decides the order within a batch, may be much older than the commit.
      await (n % 2 === 0 ? db : other)
        .transaction(async (trx) => {
          await trx('events').insert({
            id: ids.next('evt'),
            type: 'job.created',
            tenant_id: 'x',
            subject_type: 'job',
            subject_id: `${n}-${i}`,
            actor_id: 'x',
            data: '{}',
            created_at: new Date(),
          });
          await pause(Math.random() * 8);
          if (Math.random() < 0.1) await trx.rollback();
        })
        .catch(() => undefined);
    }
  };
  const publisher = async (on: Knex) => {
    while (writing) {
      await publishEvents(on, { limit: 7, now: new Date() });
      await pause(Math.random() * 3);
    }
  };
  const follower = async () => {
    const seen: string[] = [];
    let last = 0;
    for (let ended = false; ; ended = !writing) {
      const rows: { id: string; sequence: number }[] = await reading('events')
        .where('sequence', '>', last)
        .orderBy('sequence')
        .limit(10);
      seen.push(...rows.map((row) => row.id));
      last = rows.at(-1)?.sequence ?? last;
      if (ended && rows.length === 0) return seen;
    }
  };

  const following = [follower(), follower(), follower()];
  const publishing = [publisher(db), publisher(other), publisher(reading)];
  await Promise.all(Array.from({ length: WRITERS }, (_, n) => writer(n)));
  while (await db('events').whereNull('sequence').first('id')) await pause(5);
  writing = false;
  await Promise.all(publishing);
  const all: Pick<EventRecord, 'id' | 'sequence'>[] = await db('events').orderBy('sequence');
  expect(all.length).toBeGreaterThan(WRITERS * EVENTS_PER_WRITER * 0.8);
  expect(all.map(({ sequence }) => sequence)).toEqual(all.map((_, i) => i + 1));
  for (const seen of await Promise.all(following)) expect(seen).toEqual(all.map(({ id }) => id));
  await Promise.all(pools.map((pool) => pool.destroy()));
  await database.drop();
});
