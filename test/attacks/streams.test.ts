import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../support/app.ts';
import { openEventStream } from '../support/eventStream.ts';
import { eventually } from '../support/eventually.ts';
import { createUser } from '../support/users.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_MAX_EVENT_STREAMS: '10' }, { idle: true });
  await app.deps.db('tenants').insert(['acme', 'beta'].map((id) => ({ id, name: id })));
});
afterAll(() => app.stop());

const as = (tenant: string, actor = 'someone', roles = 'platform-admin') =>
  app.client.as({ actor, tenant, roles });

const newJob = (tenant: string) =>
  as(tenant).post<{ id: string }>('/api/jobs', { type: 'core.echo', payload: {} }).expect(201);

/** Streams that stay open, as those of a client that never leaves. */
function openStreams() {
  const leaving = new AbortController();
  return {
    async open(tenant: string, actor: string, jobId: string) {
      const { identity } = as(tenant, actor);
      const response = await fetch(`${app.client.base}/api/jobs/${jobId}/logs?follow`, {
        headers: identity,
        signal: leaving.signal,
      });
      if (response.status !== 200) await response.text();
      return { status: response.status, retryAfter: response.headers.get('retry-after') };
    },
    leave: () => leaving.abort(),
  };
}

describe('log streams', () => {
  test('one caller opens 20, one tenant 50, and others still open theirs', async () => {
    const [ofAcme, ofBeta] = await Promise.all([newJob('acme'), newJob('beta')]);
    const streams = openStreams();
    const open = (actor: string, count: number) =>
      Promise.all(Array.from({ length: count }, () => streams.open('beta', actor, ofBeta.id)));
    const statuses = async (actor: string, count: number) =>
      (await open(actor, count)).map(({ status }) => status).sort();

    const first = await open('mallory', 21);
    expect(first.filter(({ status }) => status === 200)).toHaveLength(20);
    expect(first.find(({ status }) => status === 429)?.retryAfter).toBe('5');
    expect(await statuses('oscar', 20)).toEqual(Array(20).fill(200));
    expect(await statuses('eve', 11)).toEqual([...Array<number>(10).fill(200), 429]);
    expect(await streams.open('acme', 'alice', ofAcme.id)).toMatchObject({ status: 200 });

    streams.leave();
    const openAgain = async () => {
      const again = openStreams();
      const { status } = await again.open('beta', 'mallory', ofBeta.id);
      again.leave();
      return status;
    };
    await eventually(openAgain, (status) => status === 200);
  });
});

test('an export ends when its caller loses a part of what they could read', async () => {
  const user = await createUser(
    app,
    { roleId: 'viewer', tenantId: 'acme' },
    { roleId: 'viewer', tenantId: 'beta' },
  );
  // More than what is sent before the reader takes it.
  const rows = Array.from({ length: 60_000 }, (_, n) => n);
  for (const tenant of ['acme', 'beta'])
    await app.deps.db.raw(
      `INSERT INTO sites (id, tenant_id, name, description)
       SELECT 'sit_' || ? || lpad(n::text, 22, '0'), ?, ? || n, repeat('x', 500)
       FROM unnest(?::integer[]) AS n`,
      [tenant, tenant, tenant, rows],
    );
  const response = await fetch(`${app.client.base}/api/inventory/sites/export`, {
    headers: user.client.identity,
  });
  expect(response.status).toBe(200);
  const { exports } = app.deps.slots;
  const untilHeld = (count: number) =>
    eventually(
      () => exports.held(),
      (held) => held === count,
    );
  // The exports of other tests have ended.
  await untilHeld(1);
  await app.deps.db('grants').where({ user_id: user.id, tenant_id: 'acme' }).delete();
  await app.deps.db('access_state').increment('version', 1);
  await untilHeld(0);
  await expect(response.text()).rejects.toThrow();
});

test('an answer after a wait is for those who may still read it', async () => {
  const user = await createUser(
    app,
    { roleId: 'viewer', tenantId: 'acme' },
    { roleId: 'viewer', tenantId: 'beta' },
  );
  const [kept, lost] = [await newJob('beta'), await newJob('acme')];
  const wait = ({ id }: { id: string }) => user.client.get(`/api/jobs/${id}`, { prefer: 'wait=2' });
  const answers = [wait(kept), wait(lost)];
  await app.deps.db('grants').where({ user_id: user.id, tenant_id: 'acme' }).delete();
  await app.deps.db('access_state').increment('version', 1);
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 404]);
});

test('a caller downloads two artifacts at a time, others of the tenant wait for no third', async () => {
  const holder = { kind: 'gateway', tenantId: 'acme', actorId: 'mallory' } as const;
  const held = [1, 2].map(() => app.deps.slots.downloads.takeNow(holder));
  const waiting = app.deps.slots.downloads.take(holder);
  const other = await app.deps.slots.downloads.take({ ...holder, actorId: 'alice' });
  for (const release of held) release();
  (await waiting)();
  other();
  const job = await newJob('acme');
  await as('acme', 'mallory').get(`/api/jobs/${job.id}/artifacts/none`).expect(404);
  expect(app.deps.slots.downloads.held()).toBe(0);
});

test('one caller opens a tenth of the streams of events, one tenant a quarter', async () => {
  const streams: { status: number; leave(): void }[] = [];
  const open = async (tenant: string, actor: string) => {
    const stream = await openEventStream(as(tenant, actor), '/api/events?follow');
    if (stream.status === 429) expect(stream.headers['retry-after']).toBe('5');
    streams.push(stream);
    return stream.status;
  };
  const kept = await openEventStream(as('beta', 'mallory'), '/api/events?follow');
  expect(kept.status).toBe(200);
  expect(await open('beta', 'mallory')).toBe(429);
  expect(await open('beta', 'oscar')).toBe(200);
  expect(await open('beta', 'eve')).toBe(429);
  expect(await open('acme', 'alice')).toBe(200);
  const { text } = app.deps.metrics;
  expect(await text()).toContain('holdfast_slots_held{kind="eventStreams"} 3\n');
  kept.leave();
  await eventually(
    () => open('beta', 'mallory'),
    (status) => status === 200,
  );
  streams.forEach(({ leave }) => leave());
});

test('exports that are not read to their end do not keep others from theirs', async () => {
  const mallory = { kind: 'gateway', tenantId: 'beta', actorId: 'mallory' } as const;
  const held = Array.from({ length: 4 }, () => app.deps.slots.exports.takeNow(mallory));
  for (const path of ['/api/inventory/sites/export', '/api/audit/export']) {
    const refused = await as('beta', 'mallory').get(path);
    expect(refused).toMatchObject({ status: 429, body: { code: 'too_many_requests' } });
    expect(refused.headers.get('retry-after')).toBe('5');
    await as('acme', 'alice').get(path).expect(200);
    await as('beta', 'bob').get(path).expect(200);
  }
  for (const release of held) release();
  // An export that was sent holds its slot no longer.
  for (let i = 0; i < 6; i += 1)
    await as('beta', 'mallory').get('/api/inventory/sites/export').expect(200);
});

test('a caller who waits a hundred times is answered immediately, and others can wait', async () => {
  const mallory = { kind: 'gateway', tenantId: 'beta', actorId: 'mallory' } as const;
  const held = Array.from({ length: 100 }, () => app.deps.slots.waits.takeNow(mallory));
  const { id } = await newJob('beta');
  const wait = { prefer: 'wait=60' };
  const answer = await as('beta', 'mallory').get<{ status: string }>(`/api/jobs/${id}`, wait);
  expect(answer.body.status).toBe('queued');

  const waiting = as('beta', 'bob').get<{ status: string }>(`/api/jobs/${id}`, wait);
  await as('beta').post(`/api/jobs/${id}/cancel`).expect(202);
  expect((await waiting).body.status).toBe('cancelled');
  for (const release of held) release();
});

test('uploads of one tenant leave slots for those of others', async () => {
  const held = ['mallory', 'oscar'].flatMap((actorId) =>
    Array.from({ length: 2 }, () =>
      app.deps.slots.uploads.takeNow({ kind: 'gateway', tenantId: 'beta', actorId }),
    ),
  );
  const send = (tenant: string, actor: string) =>
    as(tenant, actor).post('/api/inventory/import?resource=sites', 'name\nA\n', {
      'content-type': 'text/csv',
    });
  let done = false;
  const waiting = send('beta', 'bob').then((answer) => {
    done = true;
    return answer;
  });
  await send('acme', 'alice').expect(202);
  expect(done).toBe(false);
  for (const release of held) release();
  expect((await waiting).status).toBe(202);
});
