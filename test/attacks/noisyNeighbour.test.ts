import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { Type } from 'typebox';
import { allRoutes } from '../../api/app.ts';
import { canBeExpensive } from '../../api/http/expensiveReads.ts';
import type { JobRecord } from '../../api/jobs/schemas.ts';
import { claimOutbox } from '../../db/core/outbox.ts';
import type { Knex } from '../../db/core/knex.ts';
import { waitForSlot } from '../../db/jobs/slots.ts';
import { cancelJobTask, startJobTask } from '../../domain/dispatch/tasks.ts';
import { defineJobType } from '../../domain/jobs/jobType.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { currentConnectionUser, useConnectionsFor } from '../../platform/connectionUser.ts';
import { startAppOn, type TestApp } from '../support/app.ts';
import type { TestClient } from '../support/client.ts';
import { createDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { startSink } from '../support/sink.ts';

/**
 * What one tenant does must not hold up another one. Judged by counting who holds what, and by what
 * ends while the noisy tenant still holds all it may; never by the clock.
 */
let database: Awaited<ReturnType<typeof createDatabase>>;
let app: TestApp;
let noisy: TestClient;
let quiet: TestClient;
beforeAll(async () => {
  database = await createDatabase();
  const env = {
    HOLDFAST_MAX_ACTIVITY_RUNS: '8',
    HOLDFAST_MAX_DELIVERY_RUNS: '8',
    HOLDFAST_DATABASE_POOL: '10',
  };
  const extraJobTypes = [whoseConnections('inline'), whoseConnections('activity'), heldJobs];
  app = await startAppOn(database.url, env, { extraJobTypes });
  noisy = app.client.as({ tenant: 'noisy' });
  quiet = app.client.as({ tenant: 'quiet' });
});
afterAll(async () => {
  await app.stop();
  await database.drop();
});

/** A job type whose result says for whom it uses the database. */
const whoseConnections = (lane: 'inline' | 'activity') =>
  defineJobType({
    name: `test.${lane}`,
    summary: 'Says for whom it uses the database',
    payload: Type.Object({}),
    lane,
    timeoutMs: 5_000,
    run: () => Promise.resolve({ ...currentConnectionUser() }),
  });

/** Returns what `work` finds in a transaction of which nothing stays. */
async function rolledBack<T>(work: (trx: Knex) => Promise<T>): Promise<T> {
  const trx = await db().transaction();
  return work(trx).finally(() => trx.rollback());
}

/** A job that runs until the test ends it. */
const held = Promise.withResolvers<object>();
const heldJobs = defineJobType({
  name: 'test.held',
  summary: 'Runs until it is ended',
  payload: Type.Object({}),
  lane: 'activity',
  timeoutMs: 60_000,
  run: () => held.promise,
});

const WAIT = { prefer: 'wait=20' };
const db = () => app.deps.db;

describe('jobs that run long', () => {
  const sleep = (client: TestClient, durationMs: number, more: object = {}, headers = {}) =>
    client
      .post<JobRecord>(
        '/api/jobs',
        { type: 'core.sleep', payload: { durationMs, ...more }, retryPolicy: { maxAttempts: 2 } },
        headers,
      )
      .expect(201);
  const countSlots = async (slot: 'held' | 'waiting') => {
    const rows = await db()('jobs')
      .where({ tenant_id: 'noisy', slot })
      .whereIn('status', ['queued', 'running']);
    return rows.length;
  };
  const running = async (): Promise<string[]> =>
    db()('jobs').where({ tenant_id: 'noisy', status: 'running' }).orderBy('id').pluck('id');
  const cancel = (id: string) => noisy.post(`/api/jobs/${id}/cancel`).expect(202);

  let ids: string[];
  beforeAll(async () => {
    ids = [];
    for (let n = 0; n < 20; n++) ids.push((await sleep(noisy, 600_000)).id);
    await eventually(running, (all) => all.length === 4);
  });

  test('of one tenant hold half of the slots; the others wait as rows without a workflow', async () => {
    expect(await running()).toEqual(ids.slice(0, 4));
    expect(await countSlots('held')).toBe(4);
    expect(await countSlots('waiting')).toBe(16);
    expect(await db()('outbox').where('workflow_id', `job:${ids[4] ?? ''}`)).toEqual([]);
    const state = await app.deps.describeWorkflow(`job:${ids[4] ?? ''}`);
    expect(state).toEqual({ found: false });
  });

  test('have a next attempt ask for its slot soon, however many wait behind it', async () => {
    const queueOf = (n: number, isApproved: boolean) =>
      rolledBack(async (trx) => {
        const id = ids[n] ?? '';
        await trx('jobs').where({ id }).update({ slot: null });
        if (isApproved)
          await trx('jobs').whereIn('id', ids.slice(5, 8)).update({ source_kind: 'approval' });
        return waitForSlot(trx, id, 600);
      });
    expect(await queueOf(0, false)).toEqual({ ahead: 0, asking: 0 });
    // Those without a workflow do not ask. They get their slots before a newer job.
    expect(await queueOf(19, false)).toEqual({ ahead: 15, asking: 0 });
    expect(await queueOf(10, true)).toEqual({ ahead: 6, asking: 3 });
  });

  test('leave slots to another tenant, also while several of its jobs run', async () => {
    const long = await sleep(quiet, 600_000);
    expect(await sleep(quiet, 1, {}, WAIT)).toMatchObject({ status: 'succeeded' });
    expect(await sleep(quiet, 1, { failAttempts: 1 }, WAIT)).toMatchObject({
      status: 'succeeded',
      attempts: 2,
    });
    await quiet.post(`/api/jobs/${long.id}/cancel`).expect(202);
    expect(await running()).toEqual(ids.slice(0, 4));
  });

  test('get the slots that end in the order of their creation', async () => {
    await cancel(ids[1] ?? '');
    await cancel(ids[4] ?? '');
    await eventually(running, (all) => all.includes(ids[5] ?? ''));
    expect(await running()).toEqual([ids[0], ids[2], ids[3], ids[5]]);
    await cancel(ids[0] ?? '');
    await eventually(running, (all) => all.includes(ids[6] ?? ''));
    expect(await running()).toEqual([ids[2], ids[3], ids[5], ids[6]]);
  });

  test('release their slot when their workflow is lost, and when they wait for a retry', async () => {
    await app.deps.temporal.call(20_000, (client) =>
      client.workflow.getHandle(`job:${ids[2] ?? ''}`).terminate(),
    );
    await db()('jobs')
      .where({ id: ids[2] })
      .update({ checked_at: new Date(0) });
    await eventually(
      () => app.deps.reconcile.reconcileJobs(new AbortController().signal),
      (repaired) => repaired > 0,
    );
    await eventually(running, (all) => all.includes(ids[7] ?? ''));
    const { id } = await app.client
      .as({ tenant: 'retried' })
      .post<JobRecord>('/api/jobs', {
        type: 'core.sleep',
        payload: { durationMs: 1, failAttempts: 1 },
        retryPolicy: { maxAttempts: 2, initialIntervalSeconds: 600, maxIntervalSeconds: 600 },
      })
      .expect(201);
    const [row] = await eventually(
      () => db()('jobs').where({ id }).whereNotNull('error').select('status', 'slot'),
      (rows: object[]) => rows.length > 0,
    );
    expect(row).toEqual({ status: 'running', slot: null });
  });

  test('that waited are cancelled without ever running', async () => {
    const last = assertDefined(ids.at(-1), 'the last job');
    await cancel(last);
    const job = await noisy.get<JobRecord>(`/api/jobs/${last}`).expect(200);
    expect(job).toMatchObject({ status: 'cancelled', attempts: 0 });
    for (const id of ids.toReversed()) await noisy.post(`/api/jobs/${id}/cancel`);
    await eventually(running, (all) => all.length === 0);
    expect(await countSlots('waiting')).toBe(0);
  });
});

describe('webhooks whose endpoints hang', () => {
  const hook = (client: TestClient, endpointUrl: string) =>
    client
      .post<{ id: string }>('/api/webhooks', { endpointUrl, eventTypes: ['job.created'] })
      .expect(201);
  const echo = (client: TestClient) =>
    client.post('/api/jobs', { type: 'core.echo', payload: {} }).expect(201);
  const inFlight = async () => {
    const rows = await db()('deliveries').where({ status: 'pending', in_flight: true });
    return rows.length;
  };

  test('of one tenant hold half of the slots, also when there are many, and that of another tenant is sent', async () => {
    const sink = await startSink();
    try {
      sink.respond('/hang', () => undefined);
      for (let n = 0; n < 3; n++) await hook(noisy, sink.url('/hang'));
      for (let n = 0; n < 4; n++) await echo(noisy);
      await eventually(
        () => sink.requestsTo('/hang'),
        (all) => all.length === 4,
      );
      await hook(quiet, sink.url('/answers'));
      await echo(quiet);
      await eventually(
        () => sink.requestsTo('/answers'),
        (all) => all.length === 1,
      );
      expect(sink.requestsTo('/hang')).toHaveLength(4);
      await eventually(inFlight, (count) => count === 4);
      const waiting = await db()('deliveries').where({ status: 'pending', job_id: null });
      expect(waiting).toHaveLength(8);
    } finally {
      await sink.stop();
    }
  });

  test('and are deleted: while their deliveries are cancelled, that of another tenant is sent', async () => {
    const sink = await startSink();
    try {
      sink.respond('/hang', () => undefined);
      const { id } = await hook(noisy, sink.url('/hang'));
      for (let n = 0; n < 4; n++) await echo(noisy);
      const waiting = () => db()('deliveries').where({ webhook_id: id, status: 'pending' });
      await eventually(waiting, (all: object[]) => all.length === 4);
      await hook(quiet, sink.url('/still'));
      await db().transaction(async (trx) => {
        await trx('deliveries').where({ webhook_id: id }).orderBy('id').forUpdate();
        await noisy.delete(`/api/webhooks/${id}`).expect(204);
        const blocked = await eventually(findBlocked, (all) => all.length > 0);
        await echo(quiet);
        await eventually(
          () => sink.requestsTo('/still'),
          (all) => all.length === 1,
        );
        expect(await findBlocked()).toEqual(expect.arrayContaining(blocked));
      });
      await eventually(waiting, (all: object[]) => all.length === 0);
    } finally {
      await sink.stop();
    }
  });
});

/** The transactions of which a statement waits for a lock. */
async function findBlocked(): Promise<string[]> {
  const { rows } = await db().raw<{ rows: { id: string }[] }>(
    `SELECT pid || ' ' || xact_start AS id FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock'`,
  );
  return rows.map(({ id }) => id);
}

describe('connections of the database', () => {
  test.each(['inline', 'activity'])('are used for the tenant of a job, %s', async (lane) => {
    const job = await noisy
      .post<JobRecord>('/api/jobs', { type: `test.${lane}`, payload: {} }, WAIT)
      .expect(201);
    expect(job.result).toMatchObject({ part: 'background', key: 'tenant:noisy' });
  });

  test('are held by one tenant up to half of those of requests; another tenant reads', async () => {
    const requests: Promise<{ status: number }>[] = [];
    await db().transaction(async (trx) => {
      await trx.raw('LOCK TABLE schedules IN ACCESS EXCLUSIVE MODE');
      for (let n = 0; n < 30; n++)
        requests.push(noisy.get('/api/schedules').then(({ status }) => ({ status })));
      await eventually(findBlocked, (all) => all.length === 2);
      await quiet.get('/api/jobs').expect(200);
      await quiet.post('/api/jobs', { type: 'core.echo', payload: {} }, WAIT).expect(201);
      expect(await findBlocked()).toHaveLength(2);
    });
    for (const { status } of await Promise.all(requests)) expect([200, 429]).toContain(status);
  });
});

test('calls to Temporal that have piled up are made for each tenant in turn', async () => {
  const later = new Date(Date.now() + 3_600_000);
  const rowOf = (tenantId: string, n: number) => ({
    id: `out_${tenantId}_${n}`,
    workflow_id: `job:${tenantId}_${n}`,
    task: JSON.stringify(
      n % 2 === 0
        ? startJobTask(
            { id: `${tenantId}_${n}`, type: 'core.echo', tenantId },
            { lane: 'inline', timeoutMs: 1, heartbeatMs: 1 },
          )
        : cancelJobTask({ id: `${tenantId}_${n}`, tenantId }),
    ),
    available_at: new Date(later.getTime() + n),
    created_at: later,
  });
  const rows = Array.from({ length: 100 }, (_, n) => rowOf('noisy', n));
  const claimed = await rolledBack(async (trx) => {
    // The process has tasks of its own.
    await trx.raw('LOCK TABLE outbox IN EXCLUSIVE MODE');
    await trx('outbox').delete();
    await trx('outbox').insert([...rows, rowOf('quiet', 500), rowOf('third', 501)]);
    return claimOutbox(trx, { now: new Date(later.getTime() + 1_000), leaseMs: 10, limit: 4 });
  });
  expect(claimed.map(({ id }) => id)).toEqual([
    'out_noisy_0',
    'out_quiet_500',
    'out_third_501',
    'out_noisy_1',
  ]);
});

test('a worker that stops offers no slots any more while its last jobs end', async () => {
  const offers = async (): Promise<string[]> => db()('workers').pluck('id');
  await eventually(offers, (all) => all.length === 1);
  const { id } = await quiet
    .post<JobRecord>('/api/jobs', { type: 'test.held', payload: {} })
    .expect(201);
  const status = () => db()('jobs').where({ id }).pluck('status');
  await eventually(status, ([now]: string[]) => now === 'running');
  const stopping = app.deps.stopWorkers();
  await eventually(offers, (all) => all.length === 0);
  expect(await status()).toEqual(['running']);
  held.resolve({});
  await stopping;
});

describe('expensive reads', () => {
  afterEach(() => {
    jest.restoreAllMocks();
  });
  const VALIDATION = {
    resource: 'prefixes',
    operation: 'create',
    record: { cidr: '10.99.0.0/16' },
  };
  const READS: [string, () => Promise<{ status: number }>][] = [
    ['an export', () => noisy.get('/api/inventory/sites/export')],
    [
      'an export of the audit log',
      () => app.client.as({ tenant: 'noisy', roles: 'auditor' }).get('/api/audit/export'),
    ],
    ['a search', () => noisy.get('/api/inventory/sites?q=text')],
    ['a validation', () => noisy.post('/api/validation/inventory', VALIDATION)],
  ];

  test('are declared: searches, exports, counts, validations, previews, explanations', () => {
    const named = /^(search|export|validate|preview|explain)(?!Schedule|Restore)/;
    const isNamed = ({ operationId }: { operationId: string }) => named.test(operationId);
    const routes = allRoutes(app.deps, 'test');
    expect(routes.filter(isNamed).filter((route) => !canBeExpensive(route))).toEqual([]);
    const lists = routes.filter(({ query }) => query?.properties.q);
    expect(lists.length).toBeGreaterThan(10);
    expect(lists.every(canBeExpensive)).toBe(true);
  });

  test.each(READS)('%s counts against the budgets of its caller and tenant', async (_, read) => {
    const used = jest.spyOn(app.deps.readBudgets, 'charge');
    expect((await read()).status).toBe(200);
    const [holder] = used.mock.calls[0] ?? [];
    expect(holder).toMatchObject({ kind: 'gateway', actorId: 'alice' });
    expect(used.mock.calls.some(([, usedMs]) => usedMs > 0)).toBe(true);
  });

  test.each(READS)(
    '%s is refused when nothing is left; other requests are not',
    async (_, read) => {
      const refusal = new AppError('too_many_requests', 'Used up.', { retryAfterSeconds: 7 });
      jest.spyOn(app.deps.readBudgets, 'refusal').mockReturnValue(refusal);
      const answer = (await read()) as Awaited<ReturnType<TestClient['get']>>;
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '7']);
      await noisy.get('/api/inventory/sites').expect(200);
      await noisy.get('/api/inventory/sites?limit=5').expect(200);
      const counted = await noisy.get('/api/inventory/sites?count=true&facets=status').expect(200);
      expect(counted).toMatchObject({ count: null, facets: { status: null } });
    },
  );

  test('are counted without their rests', async () => {
    const used = jest.fn<(usedMs: number) => void>();
    await useConnectionsFor({ part: 'requests', key: 'tenant:noisy' }, async () => {
      const user = assertDefined(currentConnectionUser(), 'user');
      user.onUsed = used;
      const trx = await db().transaction();
      user.restedMs += 1_000_000;
      await trx.rollback();
    });
    expect(used).toHaveBeenCalledTimes(1);
    expect(used.mock.calls[0]?.[0]).toBeLessThan(0);
  });

  test('are counted while an export goes on', async () => {
    const rows = Array.from({ length: 1_100 }, (_, n) => ({
      id: `site_export_${n}`,
      tenant_id: 'noisy',
      name: `export ${n}`,
    }));
    await db()('sites').insert(rows);
    const counted: number[] = [];
    const used = jest
      .spyOn(app.deps.readBudgets, 'charge')
      .mockImplementation((_holder, usedMs) => void (usedMs > 0 && counted.push(usedMs)));
    await noisy.get('/api/inventory/sites/export').expect(200);
    // At least two pages, each with its query and its text, and the rights of the caller.
    expect(used).toHaveBeenCalled();
    expect(counted.length).toBeGreaterThanOrEqual(4);
  });
});
