import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { AssignmentRecord } from '../../../api/access/schemas.ts';
import type { EventList, EventRecord, EventWithDeliveries } from '../../../api/events/schemas.ts';
import type { WebhookRecord } from '../../../api/webhooks/schemas.ts';
import { SUPPORTED_EVENT_TYPES } from '../../../domain/events/events.ts';
import { BUILT_IN_ROLES } from '../../../domain/access/roles.ts';
import { grantAtTenant } from '../../../domain/access/scope.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import type { Caller } from '../../../domain/shared/caller.ts';
import { publishEvents } from '../../../db/events/publish.ts';
import { openDatabase, type Knex } from '../../../db/core/knex.ts';
import { createIds } from '../../../platform/ids.ts';
import { createLog } from '../../../platform/log.ts';
import { startApp, startAppOn, type TestApp } from '../../support/app.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { createDatabase } from '../../support/database.ts';
import { openEventStream } from '../../support/eventStream.ts';
import { eventually } from '../../support/eventually.ts';
import { expectInvalid, expectProblem } from '../../support/problem.ts';
import { seedEvents } from '../../support/retention.ts';
import { createToken } from '../../support/tokens.ts';
import { admin, createUser, first, type Page, type TestUser } from '../../support/users.ts';

let app: TestApp;
beforeAll(async () => {
  // Rights are not polled: streams learn of the commits that change them.
  app = await startApp({}, { idle: true, accessRecheckMs: 3_600_000 });
});
afterAll(() => app.stop());

const operator = assertDefined(BUILT_IN_ROLES.get('operator'), 'the role operator');

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
    for (const more of [',job.created', '&type=job.created'])
      expect(await types(`?type=webhook.updated${more}`)).toEqual(['webhook.updated']);
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

  test('has the features of every list', async () => {
    const client = asNewTenant();
    const id = await emitEvent(client);
    await client.put(`/api/webhooks/${id}`, { description: 'x' }).expect(200);
    await emitEvent(client);
    const all = await list(client);
    const [newest, middle] = all.items;
    const counted = await list(client, '?limit=1&count=true&facets=type&fields=type');
    expect(counted).toMatchObject({
      items: [{ id: newest?.id, type: 'webhook.created' }],
      count: { value: 3, exact: true },
      facets: {
        type: {
          values: [
            { value: 'webhook.created', count: 2 },
            { value: 'webhook.updated', count: 1 },
          ],
        },
      },
    });
    expect(Object.keys(counted.items[0] ?? {})).toEqual(['id', 'type']);
    expect(await list(client, `?after=${middle?.sequence}&count=true`)).toMatchObject({
      items: [newest],
      count: { value: 1 },
    });
    const oldestFirst = await list(client, '?sort=sequence&limit=2');
    const rest = await list(client, `?sort=sequence&limit=2&cursor=${oldestFirst.nextCursor}`);
    expect([...oldestFirst.items, ...rest.items]).toEqual(all.items.toReversed());
    expect((await list(client, '?type.not=webhook.created')).items).toEqual([middle]);
    expect((await list(client, `?createdAt.gt=${middle?.createdAt}`)).items).toEqual(
      all.items.filter(({ createdAt }) => createdAt > String(middle?.createdAt)),
    );
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

describe('a stream of events', () => {
  const streams: Awaited<ReturnType<typeof openEventStream>>[] = [];
  afterEach(() => streams.splice(0).forEach((stream) => stream.leave()));

  async function follow(client: TestClient, query = '', headers: Record<string, string> = {}) {
    const stream = await openEventStream(client, `/api/events?follow${query}`, headers);
    streams.push(stream);
    const has = (count: number) =>
      eventually(
        () => stream.data<EventRecord>('event'),
        (events) => events.length >= count,
      );
    return { ...stream, has };
  }
  /** Publishes what was emitted, as the relay of a running process does. */
  const publish = () => app.deps.relay.flush();

  test('has what the list has, and goes on with what is published', async () => {
    const [client, stranger] = [asNewTenant(), asNewTenant()];
    const start = (await list(client)).lastSequence;
    await emitEvent(client);
    await publish();
    const stream = await follow(client, `&after=${start}`);
    expect(stream.headers).toMatchObject({
      'content-type': expect.stringMatching(/^text\/event-stream/),
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
    });
    await stream.has(1);
    await emitEvent(stranger);
    await emitEvent(client);
    await publish();
    await stream.has(2);
    await emitEvent(client);
    await publish();
    const received = await stream.has(3);
    expect(received).toEqual((await list(client, `?after=${start}`)).items);
    const ids = stream.messages.flatMap(({ id, event }) => (event ? [id] : []));
    expect(ids).toEqual(received.map(({ sequence }) => String(sequence)));
    expect(stream.messages[0]).toEqual({ retry: expect.stringMatching(/^[12]\d{3}$/) });
  });

  test('continues after the last id, also if nothing was received but that', async () => {
    const client = asNewTenant();
    await emitEvent(client);
    const start = (await list(client)).lastSequence;
    const first = await follow(client);
    await eventually(first.lastId, (id) => id !== undefined);
    expect(first.lastId()).toBe(String(start));
    first.leave();
    const ids = [await emitEvent(client), await emitEvent(client)];
    await publish();
    // The header counts more than where the stream began.
    const resume = async (lastId: string | undefined) =>
      follow(client, '&after=0', { 'last-event-id': lastId ?? '' });
    const second = await resume(first.lastId());
    await second.has(2);
    expect(second.data<EventRecord>('event').map(({ subject }) => subject.id)).toEqual(ids);
    await emitEvent(client);
    await publish();
    await second.has(3);
    const third = await resume(second.data<EventRecord>('event')[0]?.sequence.toString());
    expect(await third.has(2)).toEqual(second.data<EventRecord>('event').slice(1));
  });

  test('a sequence that does not exist yet is refused with the one to continue after', async () => {
    const client = asNewTenant();
    await emitEvent(client);
    const { lastSequence } = await list(client);
    for (const query of ['after=999999999', 'after=999999999&follow'])
      expect(
        await expectProblem(client.get(`/api/events?${query}`), 410, 'events_purged'),
      ).toMatchObject({ oldestSequence: lastSequence + 1 });
  });

  test('has the filters of the list', async () => {
    const client = asNewTenant();
    const id = await emitEvent(client);
    await client.put(`/api/webhooks/${id}`, { description: 'x' }).expect(200);
    const other = await emitEvent(client);
    const [, middle] = (await list(client)).items;
    for (const query of [
      '&type=webhook.updated',
      '&type=webhook.updated&type=webhook.created',
      `&subject=${id}`,
      `&subject=webhook:${other}`,
      `&subject=job:${id}`,
      `&tenantId=${middle?.tenantId}`,
      '&tenantId=platform',
      `&type.not=webhook.updated`,
      `&createdAt.gt=${middle?.createdAt}`,
      `&since=${middle?.createdAt}`,
    ]) {
      const { items, lastSequence } = await list(client, `?after=0${query}`);
      const stream = await follow(client, `&after=0${query}`);
      // The first message is the last one: all that is wanted, or that there is nothing.
      await eventually(stream.lastId, (lastId) => lastId !== undefined);
      expect([query, stream.data('event')]).toEqual([query, items]);
      if (items.length === 0) expect(stream.lastId()).toBe(String(lastSequence));
      stream.leave();
    }
  });

  test('is of the tenants where its caller may read events', async () => {
    const one = asNewTenant();
    const platform = app.client.as({ tenant: 'platform' });
    const [ofOne, ofAll] = [await follow(one), await follow(platform)];
    const foreign = await emitEvent(asNewTenant());
    const own = await emitEvent(one);
    await publish();
    const subjects = async (stream: typeof ofOne, count: number) =>
      (await stream.has(count)).map(({ subject }) => subject.id);
    expect(await subjects(ofAll, 2)).toEqual([foreign, own]);
    expect(await subjects(ofOne, 1)).toEqual([own]);
    await app.client.as({ tenant: 'e0', roles: 'nobody' }).get('/api/events?follow').expect(403);
  });

  test.each([
    ['a cursor', '&cursor=xyz', undefined, '/cursor'],
    ['an end', '&until=2020-01-01T00:00:00Z', undefined, '/until'],
    ['an end in another form', '&createdAt<=2020-01-01T00:00:00Z', undefined, '/createdAt.lte'],
    ['a last id that is no sequence', '', 'evt_1', '/Last-Event-ID'],
  ])('refuses %s', async (_what, query, lastId, pointer) => {
    const headers = lastId === undefined ? {} : { 'last-event-id': lastId };
    await expectInvalid(asNewTenant().get(`/api/events?follow${query}`, headers), pointer);
  });

  test('ends when what its caller may read becomes less or more, so that nothing is passed over silently', async () => {
    const tenants = [asNewTenant(), asNewTenant()] as const;
    const ids = tenants.map(({ identity }) => identity['x-service-tenant-id'] ?? '');
    await app.deps.db('tenants').insert(ids.map((id) => ({ id, name: id })));
    const grants = ids.map((tenantId) => ({ roleId: 'viewer', tenantId }));
    const someone = await createUser(app, ...grants);
    const remove = async (tenantId: string) => {
      const assignments = `/api/rbac/assignments?userId=${someone.id}&tenantId=${tenantId}`;
      const { id } = first(await admin(app).get<Page<AssignmentRecord>>(assignments).expect(200));
      await admin(app).delete(`/api/rbac/assignments/${id}`).expect(204);
    };
    const add = (tenantId: string) =>
      admin(app)
        .post('/api/rbac/assignments', { userId: someone.id, roleId: 'viewer', tenantId })
        .expect(201);
    /** From which tenants a stream has events, which ends when `change` changes the rights. */
    const receivedUntil = async (change: () => Promise<unknown>) => {
      const stream = await follow(someone.client, `&type=webhook.created`);
      await eventually(stream.lastId, (id) => id !== undefined);
      for (const tenant of tenants) await emitEvent(tenant);
      await publish();
      await eventually(
        () => stream.data<EventRecord>('event'),
        (all) => all.some(({ tenantId }) => tenantId === ids[1]),
      );
      await change();
      expect(await stream.ended).toBe('ended');
      expect(stream.data<ProblemBody>('error')).toMatchObject([{ code: 'permission_denied' }]);
      return stream.data<EventRecord>('event').map(({ tenantId }) => tenantId);
    };
    expect(await receivedUntil(() => remove(ids[0] ?? ''))).toEqual(ids);
    expect(await receivedUntil(() => add(ids[0] ?? ''))).toEqual([ids[1]]);
    expect(await receivedUntil(() => remove(ids[1] ?? ''))).toEqual(ids);
  });

  /** Ways in which a caller loses access, and what a stream of theirs ends with. */
  const LOSSES: Record<string, [(holder: Holder) => Promise<unknown>, string]> = {
    'the session ends': [
      ({ user }) => user.client.post('/api/auth/logout', {}).expect(204),
      'session_invalid',
    ],
    'the account is disabled': [
      ({ user }) => admin(app).put(`/api/users/${user.id}`, { enabled: false }).expect(200),
      'session_invalid',
    ],
    'the password is reset': [
      ({ user }) => admin(app).post(`/api/users/${user.id}/reset-password`, {}).expect(200),
      'session_invalid',
    ],
    'the role loses the permission': [
      ({ roleId }) =>
        admin(app)
          .put(`/api/rbac/roles/${roleId}`, { permissions: ['job:read'] })
          .expect(200),
      'permission_denied',
    ],
    'the token is revoked': [
      ({ user, token }) => user.client.delete(`/api/auth/tokens/${token.id}`).expect(204),
      'token_invalid',
    ],
    'the token is narrowed': [
      ({ user, token }) =>
        user.client.put(`/api/auth/tokens/${token.id}`, { permissions: ['job:read'] }).expect(200),
      'permission_denied',
    ],
  };
  type Holder = {
    user: TestUser;
    roleId: string;
    token: Awaited<ReturnType<typeof createToken>>;
  };

  async function newHolder(): Promise<Holder> {
    const role = { name: 'Follower', permissions: ['event:read', 'job:read'] };
    const { id: roleId } = await admin(app)
      .post<{ id: string }>('/api/rbac/roles', role)
      .expect(201);
    const user = await createUser(app, roleId);
    return { user, roleId, token: await createToken(app, user) };
  }

  test.each(Object.keys(LOSSES))('ends when %s', async (loss) => {
    const [lose, code] = assertDefined(LOSSES[loss], loss);
    const holder = await newHolder();
    const { user, token } = holder;
    const stream = await follow(loss.includes('token') ? token.client : user.client);
    await eventually(stream.lastId, (id) => id !== undefined);
    await lose(holder);
    expect(await stream.ended).toBe('ended');
    expect(stream.data<ProblemBody>('error')).toMatchObject([{ code }]);
  });

  test('ends also in another process', async () => {
    const other = await startAppOn(app.databaseUrl, {}, { idle: true, accessRecheckMs: 3_600_000 });
    other.deps.notifications.start();
    const { user } = await newHolder();
    const stream = await follow({ ...user.client, base: other.client.base });
    await eventually(stream.lastId, (id) => id !== undefined);
    await user.client.post('/api/auth/logout', {}).expect(204);
    expect(await stream.ended).toBe('ended');
    await other.stop();
  });

  const callerOf = (tenantId: string): Caller => ({
    kind: 'gateway',
    actorId: 'alice',
    tenantId,
    rights: { grants: [grantAtTenant(operator, tenantId)] },
    requestId: 'req_test',
    address: null,
  });

  /** Follows without HTTP. Returns what reads the sequences of the next `count` events. */
  async function followDirectly(tenantId: string, after: number | undefined, signal: AbortSignal) {
    const stream = await app.deps.events.follow(
      callerOf(tenantId),
      { filter: { where: [] }, after },
      signal,
    );
    const items = stream.items[Symbol.asyncIterator]();
    return {
      close: stream.close,
      async next(count: number): Promise<(number | null)[]> {
        const sequences: (number | null)[] = [];
        while (sequences.length < count) {
          const { value, done } = await items.next();
          if (done === true) break;
          if (value.kind === 'events') sequences.push(...value.events.map((e) => e.sequence));
        }
        return sequences;
      },
    };
  }

  test('one who reads slowly, and one who comes late, read the log in pages', async () => {
    const tenant = 'slow';
    const { db } = app.deps;
    const leaving = new AbortController();
    const slow = await followDirectly(tenant, undefined, leaving.signal);
    const other = await follow(asNewTenant());
    // More than the tail has, and older.
    await seedEvents(db, { tenant, days: 1, count: 450 });
    await seedEvents(db, { tenant, days: 0, count: 50 });
    await seedEvents(db, { tenant: 'other', days: 0, count: 50 });
    const { lastSequence } = await list(asNewTenant());
    await eventually(other.lastId, (id) => id !== undefined);
    const rows = await db('events').where({ tenant_id: tenant }).orderBy('sequence');
    const sequences = rows.map(({ sequence }) => sequence as number);
    expect(await slow.next(500)).toEqual(sequences);
    const late = await followDirectly(tenant, 0, leaving.signal);
    expect(await late.next(500)).toEqual(sequences);
    leaving.abort();
    for (const stream of [slow, late]) {
      expect(await stream.next(1)).toEqual([]);
      stream.close();
    }
    expect(lastSequence).toBeGreaterThan(sequences.at(-1) ?? 0);
  });

  test('500 of them cost as many reads as one', async () => {
    const FOLLOWERS = 500;
    const client = asNewTenant();
    const tenant = client.identity['x-service-tenant-id'] ?? '';
    const after = (await list(client)).lastSequence;
    const leaving = new AbortController();
    const { db } = app.deps;
    let statements = 0;
    const count = () => void (statements += 1);
    const first = await followDirectly(tenant, after, leaving.signal);
    db.on('query', count);
    const others = await Promise.all(
      Array.from({ length: FOLLOWERS - 1 }, () => followDirectly(tenant, after, leaving.signal)),
    );
    const opening = statements;
    const followers = [first, ...others];
    for (let n = 0; n < 3; n++) await emitEvent(client);
    statements = 0;
    await publish();
    const received = await Promise.all(followers.map((follower) => follower.next(3)));
    db.removeListener('query', count);
    expect(new Set(received.map((sequences) => sequences.join()))).toHaveProperty('size', 1);
    expect(received[0]).toHaveLength(3);
    // Reads of all followers together, four a second.
    expect(opening).toBeLessThan(50);
    expect(statements).toBeLessThan(50);
    leaving.abort();
    followers.forEach(({ close }) => close());
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
      await publishEvents(on, { limit: 7, maxDeliveries: 7 });
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

test('the catalogue has the schema and an example of every type, for every user', async () => {
  const { client } = await createUser(app);
  const { items } = await client
    .get<{ items: { type: string; summary: string; dataSchema: object; example: object }[] }>(
      '/api/event-types',
    )
    .expect(200);
  expect(items.map(({ type }) => type)).toEqual(SUPPORTED_EVENT_TYPES);
  expect(items.find(({ type }) => type === 'job.failed')).toMatchObject({
    summary: 'A job has failed, after its last attempt.',
    dataSchema: { type: 'object', properties: { jobId: { type: 'string' } } },
    example: { type: 'job.failed', data: { status: 'failed' } },
  });
});
