import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from '@jest/globals';
import type { Knex } from '../../db/core/knex.ts';
import type { JobRecord } from '../../api/jobs/schemas.ts';
import type { RunRecord } from '../../api/schedules/schemas.ts';
import { QUOTA_NAMES, type QuotaName } from '../../domain/access/quotas.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { TestApp } from '../support/app.ts';
import { approve, createRequest, echoJob, untilExecution } from '../support/approvals.ts';
import { withBackups } from '../support/backups.ts';
import type { TestClient, TestResponse } from '../support/client.ts';
import { createUser, login } from '../support/users.ts';
import { eventually } from '../support/eventually.ts';
import {
  backdateSchedule,
  createMinutelySchedule,
  listRuns,
  minuteFromNow,
} from '../support/schedules.ts';
import { waitingForLock } from '../support/waitingForLock.ts';

type Created = { id: string; version: number };
type Counts = Record<QuotaName, number>;
type Quotas = { tenantId: string; limits: Counts; used: Counts; overridden: string[] };

let app: TestApp;
let root: TestClient;
withBackups(async (fixture) => {
  ({ app, root } = fixture);
  await app.deps.db('tenants').insert(['acme', 'beta'].map((id) => ({ id, name: id })));
});

const at = (tenant: string, actor = 'mallory', roles = 'platform-admin') =>
  app.client.as({ actor, tenant, roles });

let tenants = 0;
/** A tenant of its own, where mallory may do everything. */
async function newTenant(limits: Partial<Counts> = {}) {
  const id = `tenant-${++tenants}`;
  await root.post('/api/inventory/tenants', { id, name: id }).expect(201);
  await setLimits(id, limits);
  return { id, client: at(id) };
}

const setLimits = (tenantId: string, limits: Partial<Record<QuotaName, number | null>>) =>
  root.put<Quotas>(`/api/quotas/${tenantId}`, { limits }).expect(200);

const usedBy = async (tenantId: string): Promise<Counts> =>
  (await root.get<Quotas>(`/api/quotas/${tenantId}`).expect(200)).used;

const expectRefusal = ({ status, body }: TestResponse, quota: object): void =>
  expect({ status, body }).toMatchObject({
    status: 409,
    body: { code: 'quota_exceeded', quota },
  });

const schedule = (name: string) => ({
  name,
  cronExpression: '0 3 1 1 *',
  jobType: 'core.echo',
  payload: {},
});

/** Counts what a tenant owns from its records. */
async function recount(tenantId: string): Promise<Counts> {
  const { db } = app.deps;
  const inventory =
    'regions sites locations racks devices interfaces cables vrfs vlan_groups vlans prefixes ip_ranges ip_addresses';
  const unfinished = "status IN ('queued', 'running')";
  const counted: Record<QuotaName, readonly [string, string][]> = {
    schedules: [['schedules', 'deleted_at IS NULL']],
    webhooks: [['webhooks', 'deleted_at IS NULL']],
    unfinishedJobs: [['jobs', `${unfinished} AND source_kind <> 'webhook'`]],
    unfinishedImports: [['jobs', `${unfinished} AND type = 'inventory.import'`]],
    openApprovals: [['approvals', "status = 'pending'"]],
    backups: [['backups', "status IN ('queued', 'running', 'completed')"]],
    users: [['users', 'true']],
    grants: [['grants', 'true']],
    customFields: [['custom_fields', 'true']],
    legalHolds: [['legal_holds', 'released_at IS NULL']],
    secrets: [['secrets', 'true']],
    idempotencyKeys: [['idempotency_keys', 'true']],
    inventoryRecords: inventory.split(' ').map((table) => [table, 'true']),
  };
  const result = {} as Counts;
  for (const name of QUOTA_NAMES) {
    const sums = counted[name].map(
      ([table, condition]) =>
        `(SELECT count(*) FROM ${table} WHERE tenant_id = :tenantId AND ${condition})`,
    );
    const { rows } = await db.raw<{ rows: { count: number }[] }>(
      `SELECT (${sums.join(' + ')})::bigint AS count`,
      { tenantId },
    );
    result[name] = assertDefined(rows[0], name).count;
  }
  return result;
}

const sleep = { type: 'core.sleep', payload: { durationMs: 60_000 } };

/** Jobs may end between the two reads. */
const expectExactUse = (tenantId: string) =>
  eventually(
    async () => ({ used: await usedBy(tenantId), counted: await recount(tenantId) }),
    ({ used, counted }) => isDeepStrictEqual(used, counted),
  );

describe('fifty concurrent creates', () => {
  const doors: [QuotaName, (client: TestClient, n: number) => Promise<TestResponse>][] = [
    ['schedules', (client, n) => client.post('/api/schedules', schedule(`s ${n}`))],
    ['unfinishedJobs', (client) => client.post('/api/jobs', sleep)],
    ['inventoryRecords', (client, n) => client.post('/api/inventory/sites', { name: `s ${n}` })],
  ];

  test.each(doors)('do not exceed the quota %s', async (quota, create) => {
    const { id, client } = await newTenant({ [quota]: 12 });
    const responses = await Promise.all(Array.from({ length: 50 }, (_, n) => create(client, n)));
    expect(responses.filter(({ status }) => status === 201)).toHaveLength(12);
    for (const refused of responses.filter(({ status }) => status !== 201))
      expectRefusal(refused, { name: quota, limit: 12, used: 12 });
    expect((await usedBy(id))[quota]).toBe(12);
    expect((await recount(id))[quota]).toBe(12);
    // Others are not affected.
    expect((await create((await newTenant()).client, 99)).status).toBe(201);
  });
});

test('at the limit, a commit waits for another one that was checked and is not over', async () => {
  const { id } = await newTenant({ inventoryRecords: 1 });
  const { db } = app.deps;
  const [first, second] = [await db.transaction(), await db.transaction()];
  try {
    for (const [n, trx] of [first, second].entries())
      await trx('sites').insert({
        id: `${id}-${n}`,
        tenant_id: id,
        name: `s ${n}`,
        status: 'active',
      });
    await first.raw('SET CONSTRAINTS ALL IMMEDIATE');
    const outcome = second.raw('SET CONSTRAINTS ALL IMMEDIATE').then(
      () => 'accepted',
      (error: unknown) => (error as { code: string }).code,
    );
    await Promise.race([outcome, untilWaiting(1)]);
    await first.commit();
    expect(await outcome).toBe('HF002');
  } finally {
    await Promise.all([first.rollback(), second.rollback()]);
  }
});

/** Adds to what tenants own as a large commit does, and holds the locks until it ends. */
async function addAndHold(trx: Knex.Transaction, tenants: string[], quota: QuotaName, change = 1) {
  await trx('quota_usage').insert(tenants.map((id) => ({ tenant_id: id, quota, change })));
  await trx.raw('SET CONSTRAINTS ALL IMMEDIATE');
}

const untilWaiting = (count: number) =>
  eventually(
    () => waitingForLock(app.deps.db, 'advisory'),
    ({ length }) => length >= count,
  );

test('commits that were far from the limit and meet at it are accepted or refused', async () => {
  const { db } = app.deps;
  const { rows } = await db.raw<{ rows: { writers: number }[] }>(
    "SELECT current_setting('max_connections')::integer AS writers",
  );
  const limit = 30 * assertDefined(rows[0], 'max_connections').writers;
  const { id, client } = await newTenant({ schedules: limit });
  const large = await db.transaction();
  try {
    await addAndHold(large, [id], 'schedules', limit - 4);
    const creates = Array.from({ length: 8 }, (_, n) =>
      client.post('/api/schedules', schedule(`s ${n}`)),
    );
    await untilWaiting(2);
    await large.commit();
    const statuses = (await Promise.all(creates)).map(({ status }) => status);
    expect(statuses.sort()).toEqual([201, 201, 201, 201, 409, 409, 409, 409]);
    expect((await usedBy(id)).schedules).toBe(limit);
  } finally {
    await large.rollback();
  }
});

test('commits that add to several quotas in different orders do not block each other', async () => {
  const pair = [(await newTenant({ inventoryRecords: 3 })).id];
  pair.push((await newTenant({ inventoryRecords: 3 })).id);
  const { db } = app.deps;
  const held = await db.transaction();
  const others = await Promise.all([db.transaction(), db.transaction()]);
  try {
    await addAndHold(held, pair, 'inventoryRecords');
    const commits = [pair, pair.toReversed()].map(async (order, n) => {
      const trx = assertDefined(others[n], 'transaction');
      for (const id of order)
        await trx('sites').insert({
          id: `${id}-${n}`,
          tenant_id: id,
          name: `${n}`,
          status: 'active',
        });
      await trx.raw('SET CONSTRAINTS ALL IMMEDIATE');
      await trx.commit();
    });
    await untilWaiting(2);
    await held.commit();
    const outcomes = await Promise.allSettled(commits);
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled']);
  } finally {
    for (const trx of [held, ...others]) await trx.rollback();
  }
});

test('commits that come from far to near the limit neither fail nor block each other', async () => {
  const { rows } = await app.deps.db.raw<{ rows: { writers: number }[] }>(
    "SELECT current_setting('max_connections')::integer AS writers",
  );
  // Commits share the lock until this number is used, see `check_quota`.
  const shared = 20;
  const limit = 20 * assertDefined(rows[0], 'max_connections').writers + shared;
  const { id, client } = await newTenant({ inventoryRecords: limit });
  const sites = Array.from({ length: 2 * shared }, (_, n) =>
    client.post('/api/inventory/sites', { name: `s ${n}` }),
  );
  const statuses = (await Promise.all(sites)).map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set([201]));
  expect((await usedBy(id)).inventoryRecords).toBe(2 * shared);
});

describe('a tenant that owns what it may', () => {
  const site = { resource: 'sites', operation: 'create', record: { name: 'one more' } };

  test('gets no record by any way into the inventory', async () => {
    const { id, client } = await newTenant({ inventoryRecords: 2 });
    const prefix = await client
      .post<Created>('/api/inventory/prefixes', { cidr: '10.200.0.0/16', status: 'active' })
      .expect(201);
    const kept = await client.post<Created>('/api/inventory/sites', { name: 'kept' }).expect(201);
    const full = { name: 'inventoryRecords', limit: 2, used: 2 };
    expectRefusal(await client.post('/api/inventory/sites', site.record), full);
    for (const mode of ['all', 'each'])
      expectRefusal(await client.post('/api/inventory/bulk', { mode, mutations: [site] }), full);
    const allocate = { kind: 'prefix', prefixLength: 24, record: {} };
    expectRefusal(
      await client.post(`/api/inventory/prefixes/${prefix.id}/allocate`, allocate),
      full,
    );
    for (const mode of ['all', 'each']) {
      const { jobId } = await client
        .send<{ jobId: string }>(
          'POST',
          `/api/inventory/import?resource=sites&mode=${mode}`,
          'name\nA\nB\n',
          { 'content-type': 'text/csv', prefer: 'wait=30' },
        )
        .expect(202);
      const job = await client.get<JobRecord>(`/api/jobs/${jobId}`).expect(200);
      expect(job).toMatchObject({ status: 'failed', error: { code: 'quota_exceeded' } });
    }
    // Moving a record here adds it; changing and exchanging records does not.
    const elsewhere = await newTenant();
    const moved = await elsewhere.client
      .post<Created>('/api/inventory/sites', { name: 'moved' })
      .expect(201);
    expectRefusal(await root.put(`/api/inventory/sites/${moved.id}`, { tenantId: id }), full);
    await client.put(`/api/inventory/sites/${kept.id}`, { name: 'renamed' }).expect(200);
    const remove = { resource: 'sites', operation: 'delete', record: { id: kept.id } };
    await client
      .post('/api/inventory/bulk', { mode: 'all', mutations: [remove, site] })
      .expect(200);
    expect(await usedBy(id)).toEqual(await recount(id));
    expect((await usedBy(elsewhere.id)).inventoryRecords).toBe(1);
  });

  test('gets no job by a request, a retry, an approval or a schedule', async () => {
    const { id, client } = await newTenant({ unfinishedJobs: 1 });
    const ended = await client
      .post<Created>('/api/jobs', { type: 'core.echo', payload: {} }, { prefer: 'wait=20' })
      .expect(201);
    const due = minuteFromNow(-2);
    const { id: scheduleId } = await createMinutelySchedule(client);
    const approver = at(id, 'bob');
    const request = await createRequest(client, { ...echoJob, assignedUserIds: ['bob'] });
    const { id: running } = await client.post<Created>('/api/jobs', sleep).expect(201);

    const full = { name: 'unfinishedJobs', limit: 1, used: 1 };
    expectRefusal(await client.post('/api/jobs', sleep), full);
    expectRefusal(await client.post(`/api/jobs/${ended.id}/retry`), full);
    expectRefusal(await client.post(`/api/schedules/${scheduleId}/trigger`), full);

    await backdateSchedule(app, scheduleId, due);
    await app.deps.runner.fireOccurrence(scheduleId, due);
    const runs = await listRuns(client, scheduleId);
    expect(runs.find(({ dueAt }) => Date.parse(dueAt) === due.getTime())).toMatchObject({
      outcome: 'failed',
      reason: 'quota_exceeded',
      jobId: null,
    } satisfies Partial<RunRecord>);

    await approve(approver, request.id).expect(200);
    const executed = await untilExecution(client, request.id, 'failed');
    expect(executed.error).toMatchObject({ code: 'quota_exceeded' });

    await client.post(`/api/jobs/${running}/cancel`, {}, { prefer: 'wait=20' }).expect(202);
    await eventually(
      () => usedBy(id),
      ({ unfinishedJobs }) => unfinishedJobs === 0,
    );
    await client.post('/api/jobs', { type: 'core.echo', payload: {} }).expect(201);
  });

  test('gets no schedule, webhook, request, account, grant, field or backup', async () => {
    const none = Object.fromEntries(QUOTA_NAMES.map((name) => [name, 0])) as Counts;
    const { client } = await newTenant({ ...none, unfinishedJobs: 5 });
    const refused: [QuotaName, string, object][] = [
      ['schedules', '/api/schedules', schedule('a schedule')],
      ['schedules', '/api/backup/schedules', { name: 'nightly', cronExpression: '0 2 * * *' }],
      ['webhooks', '/api/webhooks', { endpointUrl: 'https://example.net/', eventTypes: ['*'] }],
      [
        'openApprovals',
        '/api/workflows',
        {
          type: 'change',
          title: 'a request',
          payload: {},
          assignedUserIds: ['bob'],
          assignedRoleIds: [],
        },
      ],
      ['users', '/api/users', { username: `someone-${tenants}` }],
      [
        'grants',
        '/api/rbac/provider-mappings',
        { providerId: await newProvider(), externalGroup: 'all', roleId: 'viewer' },
      ],
      [
        'customFields',
        '/api/inventory/custom-fields',
        { resource: 'sites', name: 'floor', type: 'text' },
      ],
      ['backups', '/api/backup/create', { mode: 'full' }],
    ];
    for (const [name, path, body] of refused)
      expectRefusal(await client.post(path, withTenant(path, body, `tenant-${tenants}`)), {
        name,
        limit: 0,
        used: 0,
      });
    const job = await client
      .post<JobRecord>(
        '/api/jobs',
        { type: 'backup.create', payload: { mode: 'full' } },
        { prefer: 'wait=30' },
      )
      .expect(201);
    expect(job).toMatchObject({ status: 'failed', error: { code: 'quota_exceeded' } });
  });

  const withTenant = (path: string, body: object, tenantId: string) =>
    path.startsWith('/api/rbac') || path === '/api/users' ? { ...body, tenantId } : body;

  const newProvider = async () =>
    (
      await root
        .post<Created>('/api/auth/providers', {
          kind: 'oidc',
          name: `provider of ${tenants}`,
          config: { issuer: 'https://login.example.net', clientId: 'holdfast' },
          enabled: false,
        })
        .expect(201)
    ).id;
});

test('a restore of a tenant obeys its quotas and changes nothing; one of the platform does not', async () => {
  const { id, client } = await newTenant();
  const backup = async (by: TestClient) =>
    (
      await by
        .post<Created>(
          '/api/backup/create',
          { mode: 'partial', sections: ['inventory'] },
          { prefer: 'wait=50' },
        )
        .expect(201)
    ).id;
  const restore = (by: TestClient, backupId: string) =>
    by.post('/api/backup/restore', { backupId, preRestoreBackup: false }, { prefer: 'wait=50' });
  const sites = [];
  for (const name of ['a', 'b', 'c'])
    sites.push(await client.post<Created>('/api/inventory/sites', { name }).expect(201));
  const [ofTenant, ofPlatform] = [await backup(client), await backup(root)];
  for (const site of sites.slice(1))
    await client.delete(`/api/inventory/sites/${site.id}`).expect(204);
  await setLimits(id, { inventoryRecords: 2 });

  expect(await restore(client, ofTenant)).toMatchObject({
    status: 409,
    body: { code: 'restore_invalid', report: { errors: [{ code: 'quota_exceeded' }] } },
  });
  expect((await usedBy(id)).inventoryRecords).toBe(1);
  await setLimits(id, { inventoryRecords: 3 });
  expect((await restore(client, ofTenant)).body).toMatchObject({ status: 'succeeded' });
  expect((await usedBy(id)).inventoryRecords).toBe(3);

  await client.delete(`/api/inventory/sites/${sites[0]?.id}`).expect(204);
  await setLimits(id, { inventoryRecords: 1 });
  const later = await newTenant({ schedules: 1 });
  expect((await restore(root, ofPlatform)).body).toMatchObject({ status: 'succeeded' });
  expect(await usedBy(id)).toEqual(await recount(id));
  // The restore deletes a tenant that the backup does not have, and its limits.
  await root.get(`/api/quotas/${later.id}`).expect(404);
  expect(await app.deps.db('tenant_quotas').where({ tenant_id: later.id })).toEqual([]);
  expect((await usedBy(id)).inventoryRecords).toBe(3);
});

test('what counts is what there is, after everything that was created, moved and deleted here', async () => {
  const { id, client } = await newTenant();
  const other = await newTenant();
  const { db, housekeeping } = app.deps;
  const device = { name: 'leaf', siteId: '' };
  for (let n = 0; n < 110; n += 1) {
    const site = await client.post<Created>('/api/inventory/sites', { name: `s${n}` }).expect(201);
    device.siteId = site.id;
    if (n % 3 === 0) await client.delete(`/api/inventory/sites/${site.id}`).expect(204);
    else if (n % 10 === 0)
      await root.put(`/api/inventory/sites/${site.id}`, { tenantId: other.id }).expect(200);
  }
  const job = await client.post<Created>('/api/jobs', sleep).expect(201);
  // A run whose worker and workflow are lost ends by the reconciler, a row by hand by nobody.
  await db('jobs').where({ id: job.id }).update({ tenant_id: other.id });
  await db('sites').where({ tenant_id: other.id }).delete();
  for (const tenantId of [id, other.id]) await expectExactUse(tenantId);
  const entries = () =>
    db('quota_usage').where({ tenant_id: id, quota: 'inventoryRecords' }).pluck('id');
  expect((await entries()).length).toBeLessThan(110);
  await db.raw("SELECT fold_quota_usage(?, 'inventoryRecords')", [id]);
  expect(await entries()).toHaveLength(1);
  await housekeeping.run(new AbortController().signal);
  expect(await usedBy(id)).toEqual(await recount(id));
});

test('values of Idempotency-Key are remembered up to the quota', async () => {
  const { client, id } = await newTenant({ idempotencyKeys: 1 });
  const create = (key: string) =>
    client.post('/api/inventory/sites', { name: key }, { 'idempotency-key': key });
  expect((await create('first')).status).toBe(201);
  expectRefusal(await create('second'), { name: 'idempotencyKeys', limit: 1, used: 1 });
  expect((await create('first')).status).toBe(201);
  expect(await usedBy(id)).toEqual(await recount(id));
});

test('a user has a hundred sessions: the oldest ends for a new one', async () => {
  const user = await createUser(app);
  const { db } = app.deps;
  const sessions = () =>
    db('sessions').where({ user_id: user.id }).orderBy('refreshed_at').select('id', 'end_reason');
  const [first] = await db('sessions').where({ user_id: user.id });
  const at = (n: number) => new Date(first.refreshed_at.getTime() - 1_000 * (n + 1));
  await db('sessions').insert(
    Array.from({ length: 100 }, (_, n) => ({ ...first, id: `ses_${n}`, refreshed_at: at(n) })),
  );
  await login(app, user.username).expect(200);
  const ended = (await sessions()).filter(({ end_reason }) => end_reason !== null);
  expect(ended).toEqual(
    ['ses_99', 'ses_98'].map((id) => ({ id, end_reason: 'too_many_sessions' })),
  );
});

describe('the limits', () => {
  test('are set by the platform only, and nobody else sees those of others', async () => {
    const mallory = at('beta');
    await mallory.get('/api/quotas/beta').expect(200);
    await mallory.put('/api/quotas/beta', { limits: { schedules: 1_000 } }).expect(403);
    await mallory.delete('/api/quotas/beta').expect(403);
    await mallory.get('/api/quotas/acme').expect(404);
    await mallory.put('/api/quotas/acme', { limits: { schedules: 0 } }).expect(404);
    const { items } = await mallory.get<{ items: Quotas[] }>('/api/quotas').expect(200);
    expect(items.map(({ tenantId }) => tenantId)).toEqual(['beta']);
    await at('beta', 'vera', 'viewer').get('/api/quotas').expect(403);
    await root.get('/api/quotas/platform').expect(404);
    await root.get('/api/quotas/nowhere').expect(404);
  });

  test('change with a version, an audit entry and an event, and return to the defaults', async () => {
    const { id } = await newTenant();
    const path = `/api/quotas/${id}`;
    const fresh = await root.get<Quotas & { version: number }>(path);
    expect(fresh.headers.get('etag')).toMatch(new RegExp(`^"${fresh.body.version}-`));
    expect(fresh.body.limits.schedules).toBe(500);
    const stale = { 'if-match': '"99"' };
    await root.put(path, { limits: { schedules: 3 } }, stale).expect(412);
    await root.delete(path, stale).expect(412);
    const all = { ...fresh.body, limits: { ...fresh.body.limits, schedules: 3 } };
    const changed = await root.put<Quotas>(path, all).expect(200);
    expect(changed).toMatchObject({
      limits: { schedules: 3, users: 10_000 },
      overridden: ['schedules'],
    });
    const more = await root.put<Quotas>(path, { limits: { users: 4 } }).expect(200);
    expect(more.overridden).toEqual(['schedules', 'users']);
    const fewer = await root.put<Quotas>(path, { limits: { schedules: null } }).expect(200);
    expect(fewer.overridden).toEqual(['users']);
    await root.delete(path).expect(204);
    const { limits, overridden } = await root.get<Quotas>(path).expect(200);
    expect({ limits, overridden }).toEqual({ limits: fresh.body.limits, overridden: [] });
    const { items } = await root
      .get<{ items: { action: string }[] }>(`/api/audit?tenantId=${id}&limit=200`)
      .expect(200);
    expect(items.filter(({ action }) => action === 'quota.update')).toHaveLength(5);
    const events = await at(id)
      .get<{ items: object[] }>('/api/events?type=quota.updated&limit=200')
      .expect(200);
    expect(events.items).toHaveLength(5);
  });

  test('are kept where they are set to the default', async () => {
    const { id } = await newTenant();
    const path = `/api/quotas/${id}`;
    const set = await root.put<Quotas>(path, { limits: { schedules: 500 } }).expect(200);
    expect(set).toMatchObject({ limits: { schedules: 500 }, overridden: ['schedules'] });
    const { limits } = set;
    const { overridden } = await root.put<Quotas>(path, { limits }).expect(200);
    expect(overridden).toHaveLength(Object.keys(limits).length);
  });

  test('are deleted with their tenant, and pages of them continue', async () => {
    const { id } = await newTenant({ schedules: 1 });
    await root.delete(`/api/inventory/tenants/${id}`).expect(204);
    await root.get(`/api/quotas/${id}`).expect(404);
    expect(await app.deps.db('tenant_quotas').where({ tenant_id: id })).toEqual([]);
    const seen: string[] = [];
    for (let cursor = ''; ;) {
      const page = await root
        .get<{ items: Quotas[]; nextCursor: string | null }>(`/api/quotas?limit=3${cursor}`)
        .expect(200);
      seen.push(...page.items.map(({ tenantId }) => tenantId));
      if (page.nextCursor === null) break;
      cursor = `&cursor=${page.nextCursor}`;
    }
    const all = await app.deps.db('tenants').whereNot({ id: 'platform' }).pluck('id');
    expect(seen).toEqual(all.sort());
  });
});

test('the platform has no limit', async () => {
  const { db } = app.deps;
  await root.post('/api/schedules', schedule('of the platform')).expect(201);
  expect(await db('quota_usage').where({ tenant_id: 'platform' })).toEqual([]);
});
