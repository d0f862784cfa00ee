import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { randomUUID } from 'node:crypto';
import type { JobTypeRecord } from '../../../api/jobs/typeSchemas.ts';
import type { ScheduleRecord } from '../../../api/schedules/schemas.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import { createRunnerToken, definition, digestOf } from '../../support/runner.ts';
import { admin, createUser, type Page } from '../../support/users.ts';
import { waitingForLock } from '../../support/waitingForLock.ts';

let app: TestApp;
let root: TestClient;
let count = 0;

beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' });
  root = admin(app);
  await createUser(app, 'viewer');
});
afterAll(() => app.stop());

type State = { name: string; digest: string; state: string; reason?: string };

/** A pool of its own, and a type in it, in an area of its own: `{area}` in patterns. */
async function poolWith(acceptTypes: string[]) {
  const pool = `announced-${++count}`;
  const name = `announced-${count}.type`;
  const client = await createRunnerToken(app, pool);
  const accept = (patterns: string[]) =>
    root
      .put(`/api/pools/${pool}`, {
        acceptTypes: patterns.map((each) => each.replace('{area}', pool)),
      })
      .expect(200);
  await accept(acceptTypes);
  const announcement = (runnerId: string, types: unknown[]) => ({
    ...{ runnerId, name: 'hand', version: '1', slots: 1, pool },
    types,
  });
  /** A process that announces versions of the type, or anything else. */
  function runner(runnerId = randomUUID()) {
    const send = async (types: unknown[]) =>
      (
        await client
          .post<{ types: State[] }>('/api/runner/announce', announcement(runnerId, types))
          .expect(200)
      ).types;
    return {
      send,
      announce: (digest: string, more: object = {}) =>
        send([{ digest: digestOf(digest), definition: { ...definition(name), pool, ...more } }]),
      alive: async () =>
        (await client.post<{ types: State[] }>('/api/runner/alive', { runnerId, pool }).expect(200))
          .types,
      leave: () => client.post('/api/runner/leave', { runnerId, pool }).expect(204),
    };
  }
  const current = async () => {
    const { items } = await root.get<Page<JobTypeRecord>>('/api/job-types').expect(200);
    const found = items.find((each) => each.name === name);
    return { state: found?.state, digest: found?.digest };
  };
  return { pool, name, client, accept, runner, current };
}

const accepted = (digest: string) => ({ state: 'accepted', digest: digestOf(digest) });

/** Calls of the compiler of schemas while something is done. */
async function compiled(what: () => Promise<unknown>): Promise<number> {
  const spy = jest.spyOn(Ajv2020.prototype, 'compile');
  try {
    await what();
    return spy.mock.calls.length;
  } finally {
    spy.mockRestore();
  }
}

test('schemas of types that are announced again are not compiled again, refused ones neither', async () => {
  const { runner } = await poolWith(['{area}.*']);
  const { announce } = runner();
  const good = () => announce('good', { payload: { type: 'object', title: 'good' } });
  const refused = () => announce('bad', { payload: { type: 'object', title: 'bad', $ref: '#/x' } });
  expect(await compiled(good)).toBeGreaterThan(0);
  expect(await compiled(refused)).toBeGreaterThan(0);
  expect(await compiled(good)).toBe(0);
  expect(await compiled(refused)).toBe(0);
  expect(await refused()).toMatchObject([
    { state: 'refused', reason: expect.stringContaining('cannot be used') },
  ]);
});

test.each([
  ['no payload schema', {}],
  ['retries that cannot be read', { payload: { type: 'object' }, retry: null }],
])('a stored type with %s stops the announcement and the list of no other', async (_what, bad) => {
  const [spoiled, other] = [await poolWith(['{area}.*']), await poolWith(['{area}.*'])];
  const first = spoiled.runner();
  await first.announce('first');
  const { db, jobTypes } = app.deps;
  await db('job_types')
    .where({ name: spoiled.name })
    .update({ definition: JSON.stringify(bad) });
  expect(await other.runner().announce('first')).toMatchObject([accepted('first')]);
  expect(await other.current()).toEqual(accepted('first'));
  expect(jobTypes.find(other.name)).toBeDefined();
  expect(jobTypes.find(spoiled.name)).toBeUndefined();
  // Another version of it mends it.
  await first.announce('second');
  expect(await spoiled.current()).toEqual(accepted('second'));
});

test('a schedule of a type that is disabled can be changed, with a warning', async () => {
  const { runner, name } = await poolWith(['{area}.*']);
  await runner().announce('first');
  const body = { name, cronExpression: '0 3 1 1 *', jobType: name };
  const { id } = await root.post<ScheduleRecord>('/api/schedules', body).expect(201);
  await root.post(`/api/job-types/${name}/disable`).expect(200);
  for (const change of [{ takeOver: true }, { retryPolicy: { maxAttempts: 4 } }]) {
    const { warnings } = await root.put<ScheduleRecord>(`/api/schedules/${id}`, change).expect(200);
    expect(warnings).toMatchObject([{ pointer: '/jobType', code: 'job_type_disabled' }]);
  }
  await root.post('/api/schedules', { ...body, name: `${name} again` }).expect(400);
});

const CHANGED = { payload: { type: 'object', required: ['more'] } };

describe('a declaration that goes back to an earlier version', () => {
  test('is accepted by a pool that accepts its name', async () => {
    const { runner, current, name } = await poolWith(['{area}.*']);
    const one = runner();
    expect(await one.announce('first')).toMatchObject([accepted('first')]);
    expect(await one.announce('second', CHANGED)).toMatchObject([accepted('second')]);
    expect(await one.announce('first')).toMatchObject([accepted('first')]);
    expect(await current()).toEqual(accepted('first'));
    await root.post(`/api/job-types/${name}/disable`).expect(200);
    expect(await one.announce('second', CHANGED)).toMatchObject([{ state: 'disabled' }]);
    expect(await one.alive()).toMatchObject([{ state: 'disabled' }]);
  });

  test('waits in a pool that does not, unless only its code or its limits are others', async () => {
    const { runner, accept, current, name } = await poolWith([]);
    const one = runner();
    await one.announce('first');
    await root.post(`/api/job-types/${name}/accept`).expect(200);
    await one.announce('second', { timeoutSeconds: 30 });
    expect(await current()).toEqual(accepted('second'));
    await one.announce('first');
    expect(await current()).toEqual(accepted('first'));
    expect(await one.announce('third', CHANGED)).toMatchObject([{ state: 'waiting' }]);
    await accept(['{area}.*']);
    expect(await one.alive()).toMatchObject([accepted('third')]);
  });

  test('replaces no version that another living runner has', async () => {
    const { runner, current } = await poolWith(['{area}.*']);
    const [one, other] = [runner(), runner()];
    await one.announce('first');
    await other.announce('second', CHANGED);
    expect(await one.announce('first')).toMatchObject([{ state: 'waiting' }]);
    expect(await one.alive()).toMatchObject([{ state: 'waiting' }]);
    expect(await current()).toEqual(accepted('second'));
    await other.leave();
    expect(await one.alive()).toMatchObject([accepted('first')]);
  });
});

test('what was announced before a pool accepts its name is accepted when its runner reports', async () => {
  const { runner, accept, current } = await poolWith([]);
  const one = runner();
  expect(await one.announce('first')).toMatchObject([{ state: 'waiting' }]);
  await accept(['{area}.*']);
  expect(await one.alive()).toMatchObject([accepted('first')]);
  expect(await current()).toEqual(accepted('first'));
});

describe('an announcement', () => {
  const typeOf = (name: string, pool: string, more: object = {}) => ({
    digest: digestOf(name),
    definition: { ...definition(name), pool, ...more },
  });

  test('is accepted without the types that cannot be announced, which it says', async () => {
    const { runner, pool } = await poolWith(['many.*']);
    const states = await runner().send([
      typeOf('many.good', pool),
      typeOf('many.bad', pool, { timeoutSeconds: -1 }),
      typeOf('many.new', pool, { fieldOfTheNextRelease: true }),
      typeOf('many.large', pool, { result: { description: 'x'.repeat(1_100_000) } }),
      { digest: 'short', definition: typeOf('many.digest', pool).definition },
      null,
    ]);
    expect(states.map(({ name, state }) => [name, state])).toEqual([
      ['many.good', 'accepted'],
      ['many.large', 'refused'],
      ['many.bad', 'refused'],
      ['many.new', 'refused'],
      ['many.digest', 'refused'],
      ['', 'refused'],
    ]);
    expect(states[2]?.reason).toMatch(/timeoutSeconds/);
  });

  test('can have as many types of the largest size as a runner may have, and says which are too many', async () => {
    const { runner, pool } = await poolWith([]);
    const large = { result: { description: 'x'.repeat(65_000) } };
    // The type belongs to another pool: nothing is written for it.
    const { name, runner: other } = await poolWith([]);
    await other().announce('first');
    const types = Array.from({ length: 201 }, () => typeOf(name, pool, large));
    const states = await runner().send(types);
    expect(states).toHaveLength(201);
    expect(states[0]?.reason).toMatch(/another pool/);
    expect(states[200]?.reason).toMatch(/200 types/);
  });
});

describe('a name', () => {
  const typeOf = (name: string, pool: string) => ({
    digest: digestOf(`${name} of ${pool}`),
    definition: { ...definition(name), pool },
  });
  type Pooled = Awaited<ReturnType<typeof poolWith>>;
  const announce = async ({ runner, pool }: Pooled, name: string) =>
    (await runner().send([typeOf(name, pool)]))[0];
  const ownerOf = (name: string) =>
    app.deps.db('job_types').where({ name }).first('pool', 'state', 'digest');
  const owned = (pool: string, name: string, state: string) => ({
    ...{ pool, state },
    digest: state === 'accepted' ? typeOf(name, pool).digest : null,
  });

  test('belongs to the pool that names it, whichever announces it first', async () => {
    const [naming, other] = [await poolWith(['{area}.*']), await poolWith(['*'])];
    const name = `${naming.pool}.of-others`;
    expect(await announce(other, name)).toMatchObject({
      state: 'refused',
      reason: expect.stringContaining('whose acceptTypes name it'),
    });
    expect(await announce(naming, name)).toMatchObject({ state: 'accepted' });
    expect(await announce(other, name)).toMatchObject({ state: 'refused' });
    expect(await ownerOf(name)).toEqual(owned(naming.pool, name, 'accepted'));
  });

  test('that waits in another pool is taken over by the pool that names it', async () => {
    const [naming, other] = [await poolWith([]), await poolWith([])];
    const { name } = naming;
    const before = other.runner();
    expect(await before.send([typeOf(name, other.pool)])).toMatchObject([{ state: 'waiting' }]);
    expect(await announce(naming, name)).toMatchObject({ state: 'refused' });
    await naming.accept(['{area}.*']);
    expect(await announce(naming, name)).toMatchObject({ state: 'accepted' });
    expect(await ownerOf(name)).toEqual(owned(naming.pool, name, 'accepted'));
    const versions = await app.deps.db('job_type_versions').where({ name }).pluck('digest');
    expect(versions).toEqual([typeOf(name, naming.pool).digest]);
    expect(await before.send([typeOf(name, other.pool)])).toMatchObject([{ state: 'refused' }]);
    expect(await before.alive()).toEqual([]);
  });

  test('that was accepted in a pool stays there, and is free for the right one when it is deleted', async () => {
    const [naming, other] = [await poolWith([]), await poolWith([])];
    const { name } = naming;
    await announce(other, name);
    await root.post(`/api/job-types/${name}/accept`).expect(200);
    await naming.accept(['{area}.*']);
    expect(await announce(naming, name)).toMatchObject({ state: 'refused' });
    expect(await announce(other, name)).toMatchObject({ state: 'accepted' });
    await root.delete(`/api/job-types/${name}`).expect(204);
    expect(await announce(other, name)).toMatchObject({ state: 'refused' });
    expect(await announce(naming, name)).toMatchObject({ state: 'accepted' });
  });

  test('goes to the pool that names it when both announce it at the same time', async () => {
    const [naming, other] = [await poolWith(['{area}.*']), await poolWith([])];
    const names = Array.from({ length: 5 }, (_, at) => `${naming.pool}.number-${at}`);
    const all = names.flatMap((name) => [announce(other, name), announce(naming, name)]);
    const states = (await Promise.all(all)).map((each) => each?.state);
    expect(states).toEqual(names.flatMap(() => ['refused', 'accepted']));
  });
});

test('a pool has at most 200 types, which take none from others', async () => {
  const [full, other] = [await poolWith([]), await poolWith([])];
  const { db } = app.deps;
  await db.raw(
    `INSERT INTO job_types (name, pool, state, created_at, updated_at, version)
     SELECT 'full.' || n, ?, 'waiting', now(), now(), 1 FROM generate_series(1, 200) AS n`,
    [full.pool],
  );
  expect(await full.runner().announce('first')).toMatchObject([
    { state: 'refused', reason: expect.stringContaining('200 types') },
  ]);
  expect(await other.runner().announce('first')).toMatchObject([{ state: 'waiting' }]);
  await db('job_types').where({ pool: full.pool }).delete();
});

test('a type that was never accepted and that nobody announces is removed after a day', async () => {
  const { db, housekeeping } = app.deps;
  const old = async (what: (pooled: Awaited<ReturnType<typeof poolWith>>) => Promise<unknown>) => {
    const pooled = await poolWith([]);
    await what(pooled);
    await db('job_types')
      .where({ name: pooled.name })
      .update({ updated_at: new Date(Date.now() - 25 * 3_600_000) });
    return pooled.name;
  };
  const left = async ({ runner }: Awaited<ReturnType<typeof poolWith>>) => {
    const one = runner();
    await one.announce('first');
    await one.leave();
  };
  const abandoned = await old(left);
  const announced = await old(({ runner }) => runner().announce('first'));
  const accepted = await old(async (pooled) => {
    await left(pooled);
    await root.post(`/api/job-types/${pooled.name}/accept`).expect(200);
  });
  const young = await poolWith([]);
  await left(young);
  await housekeeping.run(AbortSignal.timeout(20_000));
  const names = [abandoned, announced, accepted, young.name];
  expect(await db('job_types').whereIn('name', names).orderBy('name').pluck('name')).toEqual(
    [announced, accepted, young.name].sort(),
  );
  const events = await db('events').where({ subject_id: abandoned }).orderBy('id').pluck('type');
  expect(events).toEqual(['job-type.announced', 'job-type.deleted']);
});

/** Waits until a request waits for a transaction of the test. */
const untilOneWaits = () =>
  eventually(
    () => waitingForLock(app.deps.db),
    (waiting) => waiting.length > 0,
  );

describe('at the same time as another process', () => {
  test('a type is announced for the first time', async () => {
    const { runner, name, pool } = await poolWith([]);
    const answer = await app.deps.db.transaction(async (trx) => {
      const at = new Date();
      await trx('job_types').insert({
        name,
        pool,
        state: 'waiting',
        created_at: at,
        updated_at: at,
        version: 1,
      });
      const waiting = runner().announce('v1');
      await untilOneWaits();
      return { waiting };
    });
    expect(await answer.waiting).toMatchObject([{ name, state: 'waiting' }]);
  });

  test('a pool is deleted', async () => {
    const { client, pool } = await poolWith([]);
    const answer = await app.deps.db.transaction(async (trx) => {
      await trx('pools').where({ name: pool }).delete();
      const waiting = Promise.resolve(
        client.post('/api/runner/announce', {
          ...{ runnerId: randomUUID(), name: 'hand', version: '1', slots: 1, pool },
          types: [],
        }),
      );
      await untilOneWaits();
      return { waiting };
    });
    expect((await answer.waiting).status).toBe(404);
  });

  test('a type is deleted, and no job of it is created', async () => {
    const { runner, name } = await poolWith(['{area}.*']);
    await runner().announce('v1');
    const answer = await app.deps.db.transaction(async (trx) => {
      await trx('job_type_versions').where({ name }).delete();
      await trx('job_types').where({ name }).delete();
      const waiting = Promise.resolve(root.post('/api/jobs', { type: name, payload: {} }));
      await untilOneWaits();
      return { waiting };
    });
    expect((await answer.waiting).status).toBe(503);
    expect(await app.deps.db('jobs').where({ type: name })).toEqual([]);
  });

  test('a job is created, and its type is not deleted', async () => {
    const { runner, name } = await poolWith(['{area}.*']);
    await runner().announce('v1');
    const { db } = app.deps;
    const { id } = await root
      .post<{ id: string }>('/api/jobs', { type: name, payload: {} })
      .expect(201);
    await root.post(`/api/jobs/${id}/cancel`).expect(202);
    const anotherOf = (known: string) => `${known.slice(0, -1)}${known.endsWith('0') ? '1' : '0'}`;
    const answer = await db.transaction(async (trx) => {
      const [row] = await trx('jobs').where({ id });
      await trx('jobs').insert({
        ...Object.fromEntries(
          Object.entries(row as object).map(([key, value]) => [
            key,
            value !== null && typeof value === 'object' && !(value instanceof Date)
              ? JSON.stringify(value)
              : value,
          ]),
        ),
        ...{ id: anotherOf(id), status: 'queued', finished_at: null },
      });
      const waiting = Promise.resolve(root.delete(`/api/job-types/${name}`));
      await untilOneWaits();
      return { waiting };
    });
    expect((await answer.waiting).status).toBe(409);
  });
});
