import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { publishEvents } from '../../../db/events/publish.ts';
import { openDatabase, type Knex } from '../../../db/core/knex.ts';
import { createIds } from '../../../platform/ids.ts';
import { createLog } from '../../../platform/log.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { createDatabase } from '../../support/database.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.stop());

let tenants = 0;
const inTenant = (): TestClient => app.client.as({ tenant: `e${tenants++}` });
const off = { endpointUrl: 'https://example.net/', eventTypes: ['job.failed'], enabled: false };
/** Something that emits one event. */
const happen = async (client: TestClient) =>
  (await client.post('/api/webhooks', off)).body.id as string;
const list = async (client: TestClient, query = '') =>
  (await client.get(`/api/events${query}`)).body;

describe('the list', () => {
  test('has what was committed before, newest first, and pages', async () => {
    const client = inTenant();
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) ids.unshift(await happen(client));
    const all = await list(client);
    expect(all.items.map((event: any) => event.subject.id)).toEqual(ids);
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

  test('after a sequence is oldest first, and says how far it is complete', async () => {
    const client = inTenant();
    const start = (await list(client)).lastSequence;
    const ids = [await happen(client), await happen(client), await happen(client)];
    const page = await list(client, `?after=${start}&limit=2`);
    expect(page.items.map((event: any) => event.subject.id)).toEqual(ids.slice(0, 2));
    expect(page.lastSequence).toBe(page.items[1].sequence);
    const rest = await list(client, `?after=${page.lastSequence}&limit=2`);
    expect(rest.items.map((event: any) => event.subject.id)).toEqual(ids.slice(2));
    expect(rest.nextCursor).toBeNull();
    expect((await list(client, `?after=${start}&limit=2&cursor=${page.nextCursor}`)).items).toEqual(
      rest.items,
    );
    // What the filter leaves out is behind a follower all the same.
    await happen(inTenant());
    const none = await list(client, `?after=${rest.items[0].sequence}`);
    expect(none.items).toEqual([]);
    expect(none.lastSequence).toBeGreaterThan(rest.items[0].sequence);
  });

  test('filters by type, subject and time', async () => {
    const client = inTenant();
    const id = await happen(client);
    await client.put(`/api/webhooks/${id}`, { description: 'x' });
    await happen(client);
    const types = async (query: string) =>
      (await list(client, query)).items.map((event: any) => event.type);
    expect(await types('?type=webhook.updated')).toEqual(['webhook.updated']);
    expect(await types('?type=webhook.updated&type=job.created')).toEqual(['webhook.updated']);
    expect(await types(`?subject=${id}`)).toEqual(['webhook.updated', 'webhook.created']);
    expect(await types(`?subject=webhook:${id}&after=0`)).toEqual([
      'webhook.created',
      'webhook.updated',
    ]);
    expect(await types(`?subject=job:${id}`)).toEqual([]);
    const [, middle] = (await list(client)).items;
    expect(await types(`?since=${middle.createdAt}`)).toHaveLength(2);
    expect(await types(`?until=${middle.createdAt}`)).toHaveLength(1);
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
    expect((await inTenant().get(`/api/events${query}`)).status).toBe(400);
  });

  test('refuses the cursor of the other order', async () => {
    const client = inTenant();
    await happen(client);
    await happen(client);
    const { nextCursor } = await list(client, '?limit=1');
    expect((await client.get(`/api/events?after=0&cursor=${nextCursor}`)).status).toBe(400);
  });

  test('shows a tenant its own events only', async () => {
    const [one, other] = [inTenant(), inTenant()];
    const id = await happen(one);
    const [event] = (await list(one)).items;
    expect((await list(other, `?subject=${id}`)).items).toEqual([]);
    expect((await other.get(`/api/events/${event.id}`)).status).toBe(404);
    expect(
      (await list(app.client.as({ tenant: 'platform' }), `?subject=${id}`)).items,
    ).toHaveLength(1);
    expect(
      (await app.client.as({ tenant: 'platform' }).get(`/api/events/${event.id}`)).body,
    ).toMatchObject({ id: event.id, deliveries: [] });
    expect((await app.client.as({ tenant: 'e0', roles: 'nobody' }).get('/api/events')).status).toBe(
      403,
    );
  });
});

/**
 * Writers that begin and end in any order, publishers in several connections, and readers that follow: nobody ever
 * sees an event behind the place that they have reached.
 */
test('who follows the log misses nothing, with many writers at once', async () => {
  const WRITERS = 16;
  const EACH = 40;
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
    for (let i = 0; i < EACH; i++) {
      // The id, and with it the order within a batch, is older than the commit by anything.
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
      await publishEvents(on, { limit: 7, now: new Date(), ids });
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
  while (((await db('events').whereNull('sequence').count())[0] as any).count > 0) await pause(5);
  writing = false;
  await Promise.all(publishing);
  const all = await db('events').orderBy('sequence');
  expect(all.length).toBeGreaterThan(WRITERS * EACH * 0.8);
  expect(all.map((event: any) => event.sequence)).toEqual(
    all.map((_: unknown, i: number) => i + 1),
  );
  for (const seen of await Promise.all(following))
    expect(seen).toEqual(all.map((event: any) => event.id));
  await Promise.all(pools.map((pool) => pool.destroy()));
  await database.drop();
});
