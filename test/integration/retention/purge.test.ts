import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { AuditEntryRecord } from '../../../api/audit/routes.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { PreviewRecord, RetentionRecord } from '../../../api/retention/schemas.ts';
import { lockTenant } from '../../../db/access/quotas.ts';
import { saveRetention } from '../../../db/retention/settings.ts';
import { systemCaller } from '../../../domain/shared/caller.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import type { ProblemBody } from '../../support/client.ts';
import { expectProblem } from '../../support/problem.ts';
import { admin } from '../../support/users.ts';
import {
  createIdleSchedule,
  createIdleWebhook,
  purgeDue,
  seedDelivery,
  seedEvents,
  seedJobs,
  seedRuns,
  startPurgeRun,
  waitsForLock,
} from '../../support/retention.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
});
afterAll(() => app.stop());

let tenants = 0;
/** A tenant with a record, and a client of its operators and one of its administrators. */
async function newTenant() {
  const tenant = `ret${tenants++}`;
  await admin(app).post('/api/inventory/tenants', { id: tenant, name: tenant }).expect(201);
  return {
    tenant,
    client: app.client.as({ tenant }),
    owner: app.client.as({ actor: 'olga', roles: 'platform-admin', tenant }),
  };
}

const db = () => app.deps.db;

const purge = () => purgeDue(app);

const existing = async (table: string, ids: readonly string[], key = 'id'): Promise<string[]> => [
  ...new Set<string>(
    await db()(table)
      .whereIn(key, [...ids])
      .orderBy(key)
      .pluck(key),
  ),
];

describe('the purge of jobs', () => {
  test('deletes log, payload and result first, and the job later', async () => {
    const { tenant, client } = await newTenant();
    const [young = ''] = await seedJobs(db(), { tenant, days: 89 });
    const [old = ''] = await seedJobs(db(), { tenant, days: 92, status: 'failed' });
    const [unfinished = ''] = await seedJobs(db(), { tenant, days: 500, status: 'running' });
    const purged = await purge();
    expect(purged).toMatchObject({ jobLogs: 2, jobData: 1 });
    expect(await existing('job_logs', [young, old, unfinished], 'job_id')).toEqual(
      [unfinished, young].sort(),
    );
    const job = await client.get<JobRecord>(`/api/jobs/${old}`).expect(200);
    expect(job).toMatchObject({
      status: 'failed',
      payload: {},
      result: null,
      logs: [],
      error: { code: 'http_status', message: 'no' },
      version: 2,
    });
    expect(job.error).not.toHaveProperty('response');
    expect(await db()('jobs').where({ id: unfinished }).first()).toMatchObject({
      payload: { of: 'the job' },
    });
    expect(await purge()).toEqual({});
  });

  test('keeps the last 20 of a type', async () => {
    const { tenant } = await newTenant();
    const many = await seedJobs(db(), { tenant, days: 450, count: 23, lines: 1 });
    const few = await seedJobs(db(), { tenant, days: 450, count: 3, type: 'core.sleep' });
    await purge();
    expect(await existing('jobs', [...many, ...few])).toEqual([...many.slice(3), ...few].sort());
    expect(await existing('job_logs', many, 'job_id')).toEqual([]);
    await seedJobs(db(), { tenant, days: 1, count: 2 });
    // A tenant is purged once a day, and again when its periods change.
    await db()('purge_progress').delete();
    expect(await purge()).toEqual({ jobs: 2 });
  });

  test('deletes long logs in several commits', async () => {
    const { tenant } = await newTenant();
    const [long = ''] = await seedJobs(db(), { tenant, days: 91, lines: 12_000 });
    await seedJobs(db(), { tenant, days: 91, lines: 40, count: 200 });
    expect(await purge()).toMatchObject({ jobLogs: 20_000 });
    expect(await existing('job_logs', [long], 'job_id')).toEqual([]);
    const entries: { after: { kind: string; rows: number } }[] = await db()('audit_entries')
      .where({ action: 'retention.purge', tenant_id: tenant })
      .select('after');
    const rows = entries.map(({ after }) => after.rows);
    expect(Math.max(...rows)).toBeLessThanOrEqual(5_000);
    expect(rows.length).toBeGreaterThanOrEqual(4);
  });

  test('concurrent purges delete every row once', async () => {
    const { tenant } = await newTenant();
    await seedJobs(db(), { tenant, days: 91, lines: 30, count: 400 });
    const run = await startPurgeRun(db());
    const rows: number[] = [];
    const count = (kind: string, more: number) => {
      if (kind === 'jobLogs') rows.push(more);
    };
    const one = () => app.deps.purge.run(run, new Date(), Infinity, count);
    expect(await Promise.all([one(), one()])).toEqual([true, true]);
    expect(rows.reduce((sum, each) => sum + each, 0)).toBe(12_000);
    await db()('jobs').where({ id: run.jobId }).delete();
  });

  test('that ends before it is complete continues in the next one, also of another day', async () => {
    const { tenant } = await newTenant();
    const old = await seedJobs(db(), { tenant, days: 450, count: 30, lines: 1 });
    const progressOf = () => db()('purge_progress').where({ tenant_id: tenant }).first();
    const purgeUntil = async (now: Date, untilMs: number) => {
      const run = await startPurgeRun(db());
      const isComplete = await app.deps.purge.run(run, now, untilMs, () => undefined);
      await db()('jobs').where({ id: run.jobId }).delete();
      return isComplete;
    };
    const today = new Date();
    expect(await purgeUntil(today, 0)).toBe(false);
    const { unfinished } = await progressOf();
    // As after a job whose time was over when only logs were left.
    const onlyLogs = { ...unfinished, kinds: ['jobLogs'] };
    const leave = (doneFor: string) =>
      db()('purge_progress')
        .where({ tenant_id: tenant })
        .update({ done_for: doneFor, unfinished: onlyLogs });
    await leave('');
    expect(await purgeUntil(today, Infinity)).toBe(true);
    expect(await existing('job_logs', old, 'job_id')).toEqual([]);
    expect(await existing('jobs', old)).toHaveLength(30);
    expect(await progressOf()).toMatchObject({ done_for: unfinished.doneFor, unfinished: null });

    // The next day, what an unfinished purge of the day before has left is purged after it.
    await leave('');
    expect(await purgeUntil(new Date(today.getTime() + 86_400_000), Infinity)).toBe(true);
    expect(await existing('jobs', old)).toHaveLength(20);
    expect((await progressOf()).done_for).not.toBe(unfinished.doneFor);
  });

  test('an attempt that another one has replaced deletes nothing', async () => {
    const { tenant } = await newTenant();
    const jobs = await seedJobs(db(), { tenant, days: 91 });
    const run = await startPurgeRun(db());
    await db()('jobs').where({ id: run.jobId }).update({ attempts: 2 });
    await expect(
      app.deps.purge.run(run, new Date(), Infinity, () => undefined),
    ).rejects.toMatchObject({ code: 'attempt_superseded' });
    expect(await existing('job_logs', jobs, 'job_id')).toEqual(jobs);
    await db()('jobs').where({ id: run.jobId }).delete();
    await purge();
  });
});

describe('the purge of other records', () => {
  test('deletes an event after its deliveries, and these when they have ended', async () => {
    const { tenant, client } = await newTenant();
    const webhookId = await createIdleWebhook(client);
    const [first = '', second = '', third = ''] = await seedEvents(db(), {
      tenant,
      days: 91,
      count: 3,
    });
    const of = (eventId: string, days: number, status: string) =>
      seedDelivery(db(), { tenant, days, webhookId, eventId, status });
    const ended = await of(first, 31, 'failed');
    const pending = await of(second, 31, 'pending');
    const recent = await of(third, 2, 'succeeded');
    // Sent again two days ago: its id has the time of the first delivery.
    const [fourth = ''] = await seedEvents(db(), { tenant, days: 91, count: 1 });
    const repeated = await of(fourth, 31, 'succeeded');
    await db()('deliveries')
      .where({ id: repeated })
      .update({ queued_at: new Date(Date.now() - 2 * 86_400_000) });
    expect(await purge()).toEqual({ deliveries: 2, events: 1 });
    expect(await existing('deliveries', [ended, pending, recent, repeated])).toEqual(
      [pending, recent, repeated].sort(),
    );
    expect(await existing('events', [first, second, third, fourth])).toEqual(
      [second, third, fourth].sort(),
    );
  });

  test('keeps the last 20 runs of a schedule', async () => {
    const { tenant, client } = await newTenant();
    const scheduleId = await createIdleSchedule(client);
    const runs = await seedRuns(db(), { tenant, days: 402, scheduleId, count: 25 });
    expect(await purge()).toEqual({ scheduleRuns: 5 });
    expect(await existing('schedule_runs', runs)).toEqual(runs.slice(5));

    // What a purged run did is not known, so a backfill does not repeat it.
    const due = (await db()('schedule_runs').where({ id: runs[5] }).first()) as { due_at: Date };
    const at = (minutes: number) => new Date(due.due_at.getTime() + minutes * 60_000);
    const backfill = (minutes: number) =>
      app.deps.runner.backfillOccurrence(
        systemCaller(tenant, 'test'),
        scheduleId,
        at(minutes),
        () => Promise.resolve(),
      );
    expect([await backfill(-5), await backfill(-1), await backfill(-100)]).toEqual(
      Array(3).fill({ outcome: 'purged' }),
    );
    expect(await backfill(0)).toMatchObject({ outcome: 'fired' });
    const start = (since: number, until: number) =>
      client.post<ProblemBody>(`/api/schedules/${scheduleId}/backfill`, {
        since: at(since).toISOString(),
        until: at(until).toISOString(),
      });
    expect((await start(-9, -1).expect(400)).errors).toMatchObject([
      { pointer: '/until', code: 'purged' },
    ]);
    await start(-9, 1).expect(202);
    await db()('schedule_runs').where({ schedule_id: scheduleId }).delete();
    await db()('jobs').where({ tenant_id: tenant }).delete();
  });

  test('keeps the runs of a backfill for their period, whatever their scheduled times', async () => {
    const { tenant, client, owner } = await newTenant();
    const scheduleId = await createIdleSchedule(client);
    const [first = '', ...others] = await seedRuns(db(), {
      tenant,
      days: 402,
      scheduleId,
      count: 26,
    });
    await db()('schedule_runs')
      .where({ id: first })
      .update({ kind: 'backfill', outcome: 'failed', reason: 'quota_exceeded', decided_at: 'now' });
    const { kinds } = await owner
      .post<PreviewRecord>('/api/retention/preview', { tenantId: tenant })
      .expect(200);
    expect(kinds.find(({ kind }) => kind === 'scheduleRuns')?.total).toBe(5);
    expect(await purge()).toEqual({ scheduleRuns: 5 });
    expect(await existing('schedule_runs', [first, ...others])).toEqual([
      first,
      ...others.slice(5),
    ]);

    // It has not run, so a later backfill runs it, though later runs are purged.
    const run = (await db()('schedule_runs').where({ id: first }).first()) as { due_at: Date };
    const interval = { since: run.due_at.toISOString(), until: run.due_at.toISOString() };
    const path = `/api/schedules/${scheduleId}/backfill`;
    expect(await client.post(`${path}/preview`, interval).expect(200)).toMatchObject({ toRun: 1 });
    await client.post(path, interval).expect(202);
    await db()('schedule_runs').where({ schedule_id: scheduleId }).delete();
    await db()('jobs').where({ tenant_id: tenant }).delete();
  });
});

describe('the purge', () => {
  test('deletes nothing that a change keeps which is answered while it runs', async () => {
    const { tenant } = await newTenant();
    const jobs = await seedJobs(db(), { tenant, days: 91 });
    const trx = await db().transaction();
    try {
      await lockTenant(trx, tenant);
      const days = { jobLogs: null, jobData: null };
      await saveRetention(trx, { tenantId: tenant, days, jobTypes: {}, version: 1 }, new Date());
      const purged = purge();
      await eventually(() => waitsForLock(db()), Boolean);
      await trx.commit();
      expect(await purged).toEqual({});
    } finally {
      await trx.rollback().catch(() => undefined);
    }
    expect(await existing('job_logs', jobs, 'job_id')).toEqual(jobs);
  });

  test('purges the records of all others when those of a tenant cannot be', async () => {
    const [one, other] = [await newTenant(), await newTenant()];
    const stuck = await seedJobs(db(), { tenant: one.tenant, days: 91 });
    const free = await seedJobs(db(), { tenant: other.tenant, days: 91 });
    await db().raw(`
      CREATE FUNCTION refuse_test() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'refused'; END $$;
      CREATE TRIGGER refuse_test BEFORE UPDATE ON jobs FOR EACH ROW
        WHEN (OLD.tenant_id = '${one.tenant}') EXECUTE FUNCTION refuse_test()`);
    try {
      await expect(purge()).rejects.toMatchObject({ code: 'purge_incomplete' });
    } finally {
      await db().raw('DROP FUNCTION refuse_test CASCADE');
    }
    const purgedAt = (ids: string[]) =>
      db()('jobs').whereIn('id', ids).whereNotNull('data_purged_at').pluck<string[]>('id');
    expect([await purgedAt(stuck), await purgedAt(free)]).toEqual([[], free]);
    await db()('jobs').where({ type: 'retention.purge' }).delete();
    expect(await purge()).toMatchObject({ jobData: 1 });
  });
});

describe('the periods of a tenant', () => {
  test('are its own, also by job type, and change what the next purge deletes', async () => {
    const [red, blue] = [await newTenant(), await newTenant()];
    await blue.owner
      .put(`/api/retention/${blue.tenant}`, { days: { jobLogs: null, jobData: null } })
      .expect(200);
    await red.owner
      .put(`/api/retention/${red.tenant}`, { jobTypes: { 'core.sleep': { jobLogs: 200 } } })
      .expect(200);
    const seed = (tenant: string, type: string) =>
      seedJobs(db(), { tenant, days: 120, type }).then(([id = '']) => id);
    const ids = [
      await seed(red.tenant, 'core.echo'),
      await seed(red.tenant, 'core.sleep'),
      await seed(blue.tenant, 'core.echo'),
    ];
    await purge();
    expect(await existing('job_logs', ids, 'job_id')).toEqual(ids.slice(1).sort());
    const changed = { jobTypes: { 'core.sleep': { jobLogs: 100 } } };
    await red.owner.put(`/api/retention/${red.tenant}`, changed).expect(200);
    expect(await purge()).toEqual({ jobLogs: 2 });
  });

  test('of a job type that was deleted can be changed, and those of others too', async () => {
    const { owner, tenant } = await newTenant();
    const path = `/api/retention/${tenant}`;
    await owner.put(path, { jobTypes: { 'core.echo': { jobLogs: 9 } } }).expect(200);
    await db()('retention_settings')
      .where({ tenant_id: tenant })
      .update({ job_types: JSON.stringify({ 'old.type': { jobLogs: 9 } }) });
    const change = { days: { events: 8 } };
    await owner.post('/api/retention/preview', { tenantId: tenant, ...change }).expect(200);
    await owner.put(path, change).expect(200);
    await owner.put(path, { jobTypes: { 'new.type': { jobLogs: 7 } } }).expect(400);
    const ofDeleted = { jobTypes: { 'old.type': { jobLogs: 7 } } };
    expect((await owner.put<RetentionRecord>(path, ofDeleted).expect(200)).jobTypes).toEqual(
      ofDeleted.jobTypes,
    );
    await owner.put(path, { jobTypes: { 'old.type': 'default' } }).expect(200);
    await owner.put(path, ofDeleted).expect(400);
  });

  test('say when its audit log is archived: that needs the permission to archive', async () => {
    const { tenant } = await newTenant();
    const role = { id: 'periods', name: 'Periods', permissions: ['rbac:read', 'rbac:write'] };
    await admin(app).post('/api/rbac/roles', role).expect(201);
    const keeper = app.client.as({ actor: 'kim', roles: 'periods', tenant });
    const path = `/api/retention/${tenant}`;
    const { days } = await keeper.get<RetentionRecord>(path).expect(200);
    await keeper.put(path, { days: { ...days, events: 9 } }).expect(200);
    await keeper.put(path, { days: { auditArchive: 1 } }).expect(403);
    expect((await keeper.get<RetentionRecord>(path).expect(200)).days).toMatchObject({
      events: 9,
      auditArchive: null,
    });
  });

  test('can be set for a tenant by its administrators, and by nobody else', async () => {
    const [red, blue] = [await newTenant(), await newTenant()];
    const path = `/api/retention/${red.tenant}`;
    const found = await red.owner.get<RetentionRecord>(path).expect(200);
    expect(found).toEqual({
      tenantId: red.tenant,
      days: {
        jobLogs: 90,
        jobData: 90,
        jobs: 400,
        scheduleRuns: 400,
        events: 90,
        deliveries: 30,
        importRows: 30,
        auditArchive: null,
      },
      overridden: [],
      jobTypes: {},
      version: 0,
    });
    const change = {
      days: { events: 7, jobs: null },
      jobTypes: { 'core.echo': { jobLogs: 3, jobs: 5 } },
    };
    await blue.owner.put(path, change).expect(404);
    await red.client.put(path, change).expect(403);
    const after = await red.owner.put<RetentionRecord>(path, change).expect(200);
    expect(after).toMatchObject({
      days: { events: 7, jobs: null, deliveries: 30 },
      overridden: ['jobs', 'events'],
      jobTypes: { 'core.echo': { jobLogs: 3, jobs: 5 } },
      version: 1,
    });
    const back = { days: { jobs: 'default' }, jobTypes: { 'core.echo': { jobs: 'default' } } };
    expect(await red.owner.put<RetentionRecord>(path, back).expect(200)).toMatchObject({
      days: { jobs: 400 },
      overridden: ['events'],
      jobTypes: { 'core.echo': { jobLogs: 3 } },
    });
    await red.owner.put(path, { jobTypes: { 'core.none': { jobLogs: 3 } } }).expect(400);
    await red.owner.delete(path).expect(204);
    expect(await red.owner.get<RetentionRecord>(path).expect(200)).toMatchObject({
      days: found.days,
      overridden: [],
      jobTypes: {},
    });
    const { items } = await red.owner
      .get<{ items: AuditEntryRecord[] }>('/api/audit?action=retention.update')
      .expect(200);
    expect(items).toHaveLength(3);
    const events = await red.owner
      .get<{ items: { data: object }[] }>('/api/events?type=retention.updated')
      .expect(200);
    expect(events.items.at(-1)?.data).toMatchObject({ tenantId: red.tenant, days: { events: 7 } });
  });

  test('are kept where they are set to the default, unless the record is sent back as it was read', async () => {
    const { tenant, owner } = await newTenant();
    const path = `/api/retention/${tenant}`;
    const read = () => owner.get<RetentionRecord>(path).expect(200);
    await owner.put(path, { days: { events: 90, scheduleRuns: 'default' } }).expect(200);
    expect((await read()).overridden).toEqual(['events']);
    const { days, ...record } = await read();
    await owner.put(path, { ...record, days: { ...days, jobs: 30 } }).expect(200);
    expect((await read()).overridden).toEqual(['jobs', 'events']);
    await owner.put(path, await read()).expect(200);
    expect((await read()).overridden).toEqual(['jobs', 'events']);
    await expectProblem(owner.put(path, { overridden: [] }), 400, 'invalid_request');
    // All of them, with their present values.
    await owner.put(path, { days: (await read()).days }).expect(200);
    expect((await read()).overridden).toHaveLength(Object.keys(days).length);
    await owner.put(path, { days: { events: 'default' } }).expect(200);
    expect((await read()).overridden).not.toContain('events');
  });
});
