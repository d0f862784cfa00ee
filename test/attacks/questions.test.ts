import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { systemCaller } from '../../domain/shared/caller.ts';
import { createPlanner, type PlanOptions } from '../../services/inventory/planner.ts';
import { createInventoryQuestions } from '../../services/inventory/questions.ts';
import { startApp, startAppOn, type TestApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import type { ProblemBody } from '../support/client.ts';
import type {
  BatchValidation,
  BulkReport,
  InventoryRecord,
  Validation,
} from '../support/inventory.ts';
import { createUser, type TestUser } from '../support/users.ts';

const CHILDREN = 2_600;

let app: TestApp;
let viewer: TestUser;
let parent: InventoryRecord;
let child: InventoryRecord;

beforeAll(async () => {
  app = await startApp({ HOLDFAST_DATABASE_POOL: '20' }, { idle: true });
  const { db } = app.deps;
  await db('tenants').insert(['acme', 'beta'].map((id) => ({ id, name: id })));
  viewer = await createUser(app, { roleId: 'viewer', tenantId: 'acme' });
  const make = (cidr: string) =>
    acme().post<InventoryRecord>('/api/inventory/prefixes', { cidr }).expect(201);
  parent = await make('10.1.0.0/16');
  child = await make('10.1.7.0/24');
  await acme().post('/api/inventory/ip-addresses', { address: '10.1.7.9/24' }).expect(201);
  await acme().post('/api/inventory/ip-addresses', { address: '10.1.9.9/24' }).expect(201);
});
afterAll(() => app.stop());

const as = (tenant: string, actor: string, roles = 'platform-admin') =>
  app.client.as({ actor, tenant, roles });
const acme = () => as('acme', 'alice');

const VALIDATION = '/api/validation/inventory';

/**
 * Changes that depend on each other: once, they were written before the last one was planned. The
 * last one reads the ranges in the prefix.
 */
const mutations = () => [
  { resource: 'prefixes', operation: 'update', record: { id: child.id, description: 'planned' } },
  { resource: 'prefixes', operation: 'delete', record: { id: child.id } },
  { resource: 'prefixes', operation: 'delete', record: { id: parent.id } },
];

/** Keeps everybody from reading ranges, so that a question that needs them is not answered. */
async function blockRanges() {
  const trx = await app.deps.db.transaction();
  await trx.raw('LOCK TABLE ip_ranges IN ACCESS EXCLUSIVE MODE');
  return () => trx.rollback();
}

type Backend = { pid: number; backend_xid: string | null };
/** The server processes that answer questions which wait for `blockRanges`. */
const waitingBackends = async (): Promise<Backend[]> =>
  (
    await app.deps.db.raw<{ rows: Backend[] }>(
      `SELECT a.pid, a.backend_xid::text FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid
       WHERE l.relation = 'ip_ranges'::regclass AND NOT l.granted AND a.datname = current_database()`,
    )
  ).rows;

describe('a question that takes long', () => {
  test('locks nothing, writes nothing and delays nobody', async () => {
    const unblock = await blockRanges();
    const asked = viewer.client.post<{ results: Validation[] }>(VALIDATION, {
      mutations: mutations(),
    });
    const [backend] = await eventually(waitingBackends, (found) => found.length === 1);
    expect(backend?.backend_xid).toBeNull();
    const { rows } = await app.deps.db.raw<{ rows: { locktype: string; mode: string }[] }>(
      'SELECT DISTINCT locktype, mode FROM pg_locks WHERE pid = ? ORDER BY locktype',
      [backend?.pid ?? 0],
    );
    expect(rows).toEqual([
      { locktype: 'relation', mode: 'AccessShareLock' },
      { locktype: 'virtualxid', mode: 'ExclusiveLock' },
    ]);
    // Both records of the question are changed while it runs.
    for (const { id } of [child, parent])
      await acme().put(`/api/inventory/prefixes/${id}`, { description: 'changed' }).expect(200);
    await unblock();
    const { status, body } = await asked;
    expect(status).toBe(409);
    expect(body.results.map(({ validation }) => validation.valid)).toEqual([true, true, false]);
    expect(body.results[2]?.validation.conflicts.map(({ code }) => code)).toEqual([
      'would_orphan_addresses',
      'would_orphan_addresses',
    ]);
  });

  test('ends when its client leaves', async () => {
    const unblock = await blockRanges();
    const leaving = new AbortController();
    const { identity } = viewer.client;
    const asked = fetch(`${app.client.base}${VALIDATION}`, {
      method: 'POST',
      headers: { ...identity, 'content-type': 'application/json' },
      body: JSON.stringify({ mutations: mutations() }),
      signal: leaving.signal,
    }).catch(() => 'left');
    await eventually(waitingBackends, (found) => found.length === 1);
    leaving.abort();
    expect(await asked).toBe('left');
    await eventually(waitingBackends, (found) => found.length === 0);
    await unblock();
    await acme().post(VALIDATION, { mutations: mutations() }).expect(409);
  });

  test('rests for half of its time at most, so that rests alone never end it', async () => {
    const planner = createPlanner(app.deps);
    let given: PlanOptions | undefined;
    const { dryRun } = createInventoryQuestions({
      ...app.deps,
      planner: {
        ...planner,
        ask(trx, caller, options) {
          given = options;
          return planner.ask(trx, caller, options);
        },
      },
      questionTimeoutMs: 8_000,
    });
    await dryRun(systemCaller('acme', 'question'), []);
    expect(given?.maxRestMs).toBe(4_000);
  });

  test('ends after its time with 503', async () => {
    const hasty = await startAppOn(
      app.databaseUrl,
      { HOLDFAST_QUESTION_TIMEOUT_MS: '100' },
      { idle: true },
    );
    const unblock = await blockRanges();
    const answer = await hasty.client
      .as({ actor: 'alice', tenant: 'acme', roles: 'platform-admin' })
      .post(VALIDATION, { mutations: mutations() });
    expect(answer).toMatchObject({ status: 503, body: { code: 'unavailable' } });
    expect(answer.headers.get('retry-after')).toBe('5');
    await eventually(waitingBackends, (found) => found.length === 0);
    await unblock();
    await hasty.stop();
  });
});

test('one caller has one question, some wait, and others are answered', async () => {
  const mallory = { kind: 'gateway', tenantId: 'beta', actorId: 'mallory' } as const;
  const held = [app.deps.slots.questions.takeNow(mallory)];
  const ask = (actor: string) =>
    as('beta', actor, 'viewer').post(VALIDATION, {
      resource: 'regions',
      operation: 'create',
      record: { name: 'r' },
    });
  const asked = Array.from({ length: 9 }, () => ask('mallory'));
  const refused = await Promise.race(asked);
  expect(refused).toMatchObject({ status: 429, body: { code: 'too_many_requests' } });
  expect(refused.headers.get('retry-after')).toBe('5');
  await ask('oscar').expect(200);
  await acme().post(VALIDATION, { mutations: mutations() }).expect(409);
  // The plan of an approval request is a question too.
  const requested = as('beta', 'mallory').post('/api/workflows', {
    type: 'change',
    title: 'A region',
    payload: {},
    assignedUserIds: [],
    assignedRoleIds: ['approver'],
    validationRequest: { resource: 'regions', operation: 'create', record: { name: 'r' } },
  });
  expect((await requested).status).toBe(429);
  for (const release of held) release();
  const statuses = (await Promise.all(asked)).map(({ status }) => status).sort();
  expect(statuses).toEqual([...Array<number>(8).fill(200), 429]);
});

describe('large writes', () => {
  const write = (tenant: string, actor: string) =>
    as(tenant, actor).post('/api/inventory/bulk', {
      mode: 'each',
      mutations: [{ resource: 'regions', operation: 'create', record: {} }],
    });
  const statusesOf = async (requests: Promise<{ status: number }>[]) =>
    (await Promise.all(requests)).map(({ status }) => status).sort();

  test('a few of one caller wait for each other, and others are answered', async () => {
    const mallory = { kind: 'gateway', tenantId: 'beta', actorId: 'mallory' } as const;
    const { largeWrites } = app.deps.slots;
    const held = [largeWrites.takeNow(mallory), largeWrites.takeNow(mallory)];
    const waiting = Array.from({ length: 21 }, () => Promise.resolve(write('beta', 'mallory')));
    expect(await Promise.race(waiting)).toMatchObject({
      status: 429,
      body: { code: 'too_many_requests' },
    });
    await write('beta', 'oscar').expect(200);
    held.push(largeWrites.takeNow({ ...mallory, actorId: 'oscar' }));
    // The share of the tenant is used up, others have theirs.
    await write('acme', 'alice').expect(200);
    for (const release of held) release();
    expect(await statusesOf(waiting)).toEqual([...Array<number>(20).fill(200), 429]);
    const released = Array.from({ length: 3 }, (_, i) =>
      largeWrites.takeNow({ ...mallory, actorId: `free${i}` }),
    );
    for (const release of released) release();
  });

  test('allocations of prefixes wait for each other, those of addresses do not', async () => {
    const pool = await acme()
      .post<InventoryRecord>('/api/inventory/prefixes', {
        cidr: '10.77.0.0/24',
        allocationMode: 'pool',
      })
      .expect(201);
    const bob = { kind: 'gateway', tenantId: 'acme', actorId: 'bob' } as const;
    const held = Array.from({ length: 4 }, () => app.deps.slots.allocations.takeNow(bob));
    const allocate = (body: object) =>
      as('acme', 'bob').post(`/api/inventory/prefixes/${pool.id}/allocate`, body);
    const order: string[] = [];
    const network = allocate({ kind: 'prefix', prefixLength: 28 }).then(({ status }) => {
      order.push('prefix');
      return status;
    });
    await allocate({ kind: 'address' }).expect(201);
    order.push('address');
    for (const release of held) release();
    expect(await network).toBe(201);
    expect(order).toEqual(['address', 'prefix']);
  });
});

describe('a question that is too large', () => {
  test('effects on other records are counted over all mutations', async () => {
    const prefix = await acme()
      .post<InventoryRecord>('/api/inventory/prefixes', { cidr: '10.40.0.0/16' })
      .expect(201);
    await app.deps.db.raw(
      `INSERT INTO prefixes (id, tenant_id, cidr, parent_prefix_id, status, allocation_mode, tags, custom_fields, version, created_at, updated_at, description)
       SELECT 'pfx_child' || i, 'acme', set_masklen('10.40.0.0'::inet + i * 8, 29)::cidr, ?, 'active', 'static', '{}', '{}', 1, now(), now(), ''
       FROM generate_series(1, ?) AS i`,
      [prefix.id, CHILDREN],
    );
    const moves = (count: number) =>
      viewer.client.post(VALIDATION, {
        mutations: Array.from({ length: count }, (_, i) => ({
          resource: 'prefixes',
          operation: 'update',
          record: { id: prefix.id, cidr: i % 2 === 0 ? '10.41.0.0/16' : '10.40.0.0/16' },
        })),
      });
    expect((await moves(1)).status).toBe(200);
    expect(await moves(150)).toMatchObject({ status: 409, body: { code: 'limit_reached' } });
  });

  test('so is the length of the answer', async () => {
    await app.deps.db.raw(
      `INSERT INTO regions (id, tenant_id, name, tags, custom_fields, version, created_at, updated_at, description)
       SELECT 'reg_big' || i, 'acme', 'big' || i, '{}', json_build_object('note', repeat('x', 100000))::jsonb, 1, now(), now(), ''
       FROM generate_series(1, 90) AS i`,
    );
    const describeRegions = (count: number) =>
      viewer.client.post(VALIDATION, {
        mutations: Array.from({ length: count }, (_, i) => ({
          resource: 'regions',
          operation: 'update',
          record: { id: `reg_big${i + 1}`, description: 'large' },
        })),
      });
    expect((await describeRegions(10)).status).toBe(200);
    expect(await describeRegions(90)).toMatchObject({
      status: 409,
      body: { code: 'limit_reached' },
    });
  });
});

describe('findings of one request', () => {
  const names = Array.from({ length: 50 }, (_, i) => [`unknown${i}`, 1] as const);
  /** Each has more invalid fields than a request lists on average. */
  const invalid = Array.from({ length: 1_000 }, (_, i) => ({
    resource: 'regions',
    operation: 'create',
    record: { name: `found${i}`, customFields: Object.fromEntries(names) },
  }));
  /** All are listed up to the bound, and then one of each mutation. */
  const LISTED = 1_000 + 980;

  test('are bounded in a validation, and each invalid mutation is', async () => {
    const { status, body } = await viewer.client.post<BatchValidation>(VALIDATION, {
      mutations: invalid,
    });
    expect(status).toBe(400);
    expect(body.validation.errors).toHaveLength(LISTED);
    expect(body.validation.errors.at(-1)?.pointer).toBe(
      '/mutations/999/record/customFields/unknown0',
    );
    const counts = body.results.map(({ validation }) => validation.errors.length);
    expect(counts).toEqual([...Array<number>(20).fill(50), ...Array<number>(980).fill(1)]);
    expect(body.results.some(({ validation }) => validation.valid)).toBe(false);
  });

  test('are bounded in bulk writes', async () => {
    const each = await acme()
      .post<BulkReport>('/api/inventory/bulk', { mode: 'each', mutations: invalid })
      .expect(200);
    expect(each.counts).toMatchObject({ invalid: 1_000 });
    expect(each.results.flatMap(({ errors }) => errors)).toHaveLength(LISTED);
    const all = await acme()
      .post<ProblemBody>('/api/inventory/bulk', { mutations: invalid })
      .expect(400);
    expect(all.errors).toHaveLength(LISTED);
  });
});

/** What planning mutations costs, each call on top of the last. */
async function costOf(planned: readonly { resource: string; operation: string; record: object }[]) {
  return app.deps.inventory.questions.dryRunInSteps(
    systemCaller('acme', 'test'),
    new AbortController().signal,
    async (questions, trx) => {
      const { rows } = await trx.raw<{ rows: { transaction_read_only: string }[] }>(
        'SHOW transaction_read_only',
      );
      expect(rows).toEqual([{ transaction_read_only: 'on' }]);
      await questions.plan(planned);
      return { ...questions.cost };
    },
  );
}

describe('the cost grows linearly', () => {
  const create = (resource: string, record: object) => ({ resource, operation: 'create', record });

  test('with nested prefixes in new VRFs', async () => {
    const nested = (count: number) =>
      Array.from({ length: count }, (_, i) => {
        const vrfId = { name: `nested-${i}` };
        return [
          create('vrfs', vrfId),
          create('prefixes', { vrfId, cidr: '10.0.1.0/24' }),
          create('prefixes', { vrfId, cidr: '10.0.0.0/16', status: 'container' }),
          create('prefixes', { vrfId, cidr: '10.0.0.0/8', status: 'container' }),
        ];
      }).flat();
    const [few, many] = [await costOf(nested(12)), await costOf(nested(120))];
    expect(many.statements).toBe(few.statements);
    expect(many.rows).toBe(few.rows);
    expect(many.attempts).toBeLessThanOrEqual(12 * few.attempts);
  });

  test('with moves of one prefix to and fro', async () => {
    const prefix = await acme()
      .post<InventoryRecord>('/api/inventory/prefixes', { cidr: '172.16.0.0/24' })
      .expect(201);
    for (let i = 0; i < 20; i++)
      await acme()
        .post('/api/inventory/prefixes', { cidr: `172.16.0.${i * 8}/29` })
        .expect(201);
    const moves = (count: number) =>
      Array.from({ length: count }, (_, i) => ({
        resource: 'prefixes',
        operation: 'update',
        record: { id: prefix.id, cidr: i % 2 === 0 ? '172.17.0.0/24' : '172.16.0.0/24' },
      }));
    const [few, many] = [await costOf(moves(15)), await costOf(moves(150))];
    expect(many.rows).toBe(few.rows);
    expect(many.statements).toBeLessThanOrEqual(few.statements + 1);
    expect(many.attempts).toBeLessThanOrEqual(12 * few.attempts);
  });

  test('with mutations of which each needs what the one before it decides', async () => {
    const chain = (count: number) =>
      Array.from({ length: count }, (_, i) => [
        create('ip-addresses', { address: `192.168.${i >> 6}.${(i & 63) * 4 + 1}/24` }),
        create('prefixes', { cidr: `192.168.${i >> 6}.${(i & 63) * 4}/30`, status: 'container' }),
        create('prefixes', { cidr: `192.168.${i >> 6}.${(i & 63) * 4}/31`, status: 'container' }),
      ]).flat();
    const [few, many] = [await costOf(chain(15)), await costOf(chain(150))];
    expect(many.statements).toBeLessThanOrEqual(12 * few.statements);
    expect(many.attempts).toBeLessThanOrEqual(12 * few.attempts);
  });

  test('with rows that name a VRF by its name, each tried once', async () => {
    await acme().post('/api/inventory/vrfs', { name: 'by name' }).expect(201);
    const rows = Array.from({ length: 60 }, (_, i) =>
      create('prefixes', { cidr: `10.${i}.0.0/16`, vrfId: { name: 'by name' } }),
    );
    expect(await costOf(rows)).toMatchObject({ statements: 2, attempts: rows.length });
  });

  test('not at all with the definitions of custom fields of other tenants', async () => {
    const valued = [create('tags', { id: 'valued', name: 'valued' })];
    const region = [create('regions', { name: 'valued', customFields: {} })];
    const before = [await costOf(valued), await costOf(region)];
    await app.deps.db.raw(
      `INSERT INTO custom_fields (id, tenant_id, resource, name, type, required, choices, tags, custom_fields, version, created_at, updated_at, description)
       SELECT 'cfd_' || resource || n, 'beta', resource, 'field' || n, 'text', false, '{}', '{}', '{}', 1, now(), now(), ''
       FROM unnest(ARRAY['tags', 'regions']) AS resource, generate_series(1, 50) AS n`,
    );
    expect([await costOf(valued), await costOf(region)]).toEqual(before);
  });
});
