import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { lockToHold } from '../../../db/retention/holds.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import {
  createIdleSchedule,
  createIdleWebhook,
  daysAgo,
  purgeDue,
  seedDelivery,
  seedEvents,
  seedImport,
  seedJobs,
  seedRuns,
} from '../../support/retention.ts';
import { admin } from '../../support/users.ts';
import { waitingForLock } from '../../support/waitingForLock.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
});
afterAll(() => app.stop());

const db = () => app.deps.db;
const purge = () => purgeDue(app);

let tenants = 0;
/** A tenant with a record, and a client of its administrators. */
async function newTenant() {
  const tenant = `kept${tenants++}`;
  await admin(app).post('/api/inventory/tenants', { id: tenant, name: tenant }).expect(201);
  return { tenant, owner: app.client.as({ actor: 'olga', roles: 'platform-admin', tenant }) };
}

async function hold(client: TestClient, type?: string, id?: string) {
  const subject = type === undefined ? {} : { subject: { type, id } };
  const body = { reason: 'Case 7', ...subject };
  const { id: holdId } = await client.post<{ id: string }>('/api/legal-holds', body).expect(201);
  return {
    release: () =>
      client.post(`/api/legal-holds/${holdId}/release`, { reason: 'closed' }).expect(200),
  };
}

/** A tenant is purged once a day: the next purge examines all of them again. */
const purgeAgain = async () => {
  await db()('purge_progress').delete();
  return purge();
};

const JOB_DAYS = 450;
const EVENT_DAYS = 91;
const DELIVERY_DAYS = 31;
const RUN_DAYS = 450;
const IMPORT_DAYS = 31;

async function seedOldDelivery(client: TestClient, tenant: string): Promise<string> {
  const webhookId = await createIdleWebhook(client);
  const [eventId = ''] = await seedEvents(db(), { tenant, days: EVENT_DAYS });
  await seedDelivery(db(), {
    tenant,
    days: DELIVERY_DAYS,
    webhookId,
    eventId,
    status: 'failed',
  });
  return webhookId;
}

/** A schedule with one run more than are kept whatever their age. */
async function seedOldRuns(client: TestClient, tenant: string, name: string): Promise<string> {
  const scheduleId = await createIdleSchedule(client, name);
  await seedRuns(db(), { tenant, days: RUN_DAYS, scheduleId, count: 21 });
  return scheduleId;
}

/** Records of every kind that are old enough to be purged. */
async function seedHistory(client: TestClient, tenant: string): Promise<void> {
  const [jobId = ''] = await seedJobs(db(), { tenant, days: JOB_DAYS, count: 21, lines: 1 });
  await seedImport(db(), { tenant, days: IMPORT_DAYS, jobId, rows: 3 });
  await seedOldDelivery(client, tenant);
  await seedOldRuns(client, tenant, 'nightly');
}

/** What the purge of such a tenant deletes. */
const HISTORY = {
  importRows: 3,
  jobLogs: 21,
  jobData: 21,
  scheduleRuns: 1,
  deliveries: 2,
  events: 1,
  jobs: 2,
};

const importRowsOf = async (importId: string): Promise<number> =>
  (await db()('import_rows').where({ import_id: importId })).length;

/** The records of a tenant that the purge of such a tenant would delete. */
async function historyOf(tenant: string): Promise<Record<string, number>> {
  const count = async (table: string, where: object = {}) =>
    (await db()(table).where({ tenant_id: tenant, ...where })).length;
  const [imported] = await db()('imports').where({ tenant_id: tenant }).pluck<string[]>('id');
  return {
    importRows: imported === undefined ? 0 : await importRowsOf(imported),
    jobLogs: (
      await db()('job_logs').whereIn(
        'job_id',
        db()('jobs').where({ tenant_id: tenant }).select('id'),
      )
    ).length,
    jobsWithData: await count('jobs', { data_purged_at: null }),
    scheduleRuns: await count('schedule_runs'),
    deliveries: await count('deliveries'),
    oldEvents: await count('events', { subject_id: 'whk_old' }),
    jobs: await count('jobs'),
  };
}

describe('a legal hold keeps from the purge', () => {
  test('everything of a tenant, until it is released', async () => {
    const [held, free] = [await newTenant(), await newTenant()];
    await seedHistory(held.owner, held.tenant);
    await seedHistory(free.owner, free.tenant);
    const before = await historyOf(held.tenant);
    expect(await historyOf(free.tenant)).toEqual(before);
    const { release } = await hold(held.owner);
    expect(await purge()).toEqual(HISTORY);
    expect(await historyOf(held.tenant)).toEqual(before);
    expect(await historyOf(free.tenant)).toEqual({
      importRows: 0,
      jobLogs: 0,
      jobsWithData: 0,
      scheduleRuns: 20,
      deliveries: 0,
      oldEvents: 0,
      jobs: 20,
    });
    await release();
    expect(await purgeAgain()).toEqual(HISTORY);
    expect(await historyOf(held.tenant)).toEqual(await historyOf(free.tenant));
  });

  test('a job, with its log, data and import', async () => {
    const { tenant, owner } = await newTenant();
    const [heldJob = '', other = ''] = await seedJobs(db(), {
      tenant,
      days: JOB_DAYS,
      count: 22,
      lines: 1,
    });
    const heldImport = await seedImport(db(), { tenant, days: IMPORT_DAYS, jobId: heldJob });
    const otherImport = await seedImport(db(), { tenant, days: IMPORT_DAYS, jobId: other });
    const { release } = await hold(owner, 'job', heldJob);
    // The job itself, and its import.
    expect(await purge()).toEqual({ importRows: 1, jobLogs: 21, jobData: 21, jobs: 2 });
    expect(await db()('job_logs').where({ job_id: heldJob })).toHaveLength(1);
    expect(await db()('jobs').where({ id: heldJob }).first()).toMatchObject({
      payload: { of: 'the job' },
      result: { done: true },
    });
    expect([await importRowsOf(heldImport), await importRowsOf(otherImport)]).toEqual([1, 0]);
    await release();
    expect(await purgeAgain()).toEqual({ importRows: 1, jobLogs: 1, jobData: 1, jobs: 2 });
  });

  test('the deliveries of a webhook, with their events', async () => {
    const { tenant, owner } = await newTenant();
    const heldWebhook = await seedOldDelivery(owner, tenant);
    await seedOldDelivery(owner, tenant);
    const { release } = await hold(owner, 'webhook', heldWebhook);
    expect(await purge()).toEqual({ deliveries: 2, events: 1 });
    expect(await db()('deliveries').where({ tenant_id: tenant }).pluck('webhook_id')).toEqual([
      heldWebhook,
    ]);
    await release();
    expect(await purgeAgain()).toEqual({ deliveries: 2, events: 1 });
  });

  test('the runs of a schedule', async () => {
    const { tenant, owner } = await newTenant();
    const heldSchedule = await seedOldRuns(owner, tenant, 'held');
    await seedOldRuns(owner, tenant, 'other');
    const { release } = await hold(owner, 'schedule', heldSchedule);
    expect(await purge()).toEqual({ scheduleRuns: 1 });
    expect(await db()('schedule_runs').where({ schedule_id: heldSchedule })).toHaveLength(21);
    await release();
    expect(await purgeAgain()).toEqual({ scheduleRuns: 1 });
  });

  test('what it covers when the purge waits for it', async () => {
    const { tenant, owner } = await newTenant();
    await seedHistory(owner, tenant);
    const before = await historyOf(tenant);
    const trx = await db().transaction();
    try {
      await lockToHold(trx, [tenant]);
      const purged = purge();
      const isWaiting = eventually(
        () => waitingForLock(db(), 'advisory'),
        (waiting) => waiting.length > 0,
      );
      await Promise.race([purged, isWaiting]);
      const at = new Date();
      await trx('legal_holds').insert({
        id: app.deps.ids.next('hld'),
        tenant_id: tenant,
        level: 'tenant',
        reason: 'Case 7',
        created_by: 'olga',
        created_at: at,
        updated_at: at,
        version: 1,
      });
      await trx.commit();
      expect(await purged).toEqual({});
    } finally {
      await trx.rollback().catch(() => undefined);
    }
    expect(await historyOf(tenant)).toEqual(before);
  });
});

const endJob = (id: string) =>
  db()('jobs').where({ id }).update({ status: 'succeeded', finished_at: new Date() });

describe('the purge of rows of imports', () => {
  test('deletes many in several commits', async () => {
    const { tenant } = await newTenant();
    const [jobId = ''] = await seedJobs(db(), { tenant, days: 1 });
    const long = await seedImport(db(), { tenant, days: IMPORT_DAYS, jobId, rows: 12_000 });
    const young = await seedImport(db(), { tenant, days: 29, jobId });
    expect(await purge()).toEqual({ importRows: 12_000 });
    expect([await importRowsOf(long), await importRowsOf(young)]).toEqual([0, 1]);
    const entries: { after: { kind: string; rows: number } }[] = await db()('audit_entries')
      .where({ action: 'retention.purge', tenant_id: tenant })
      .orderBy('id')
      .select('after');
    expect(entries.map(({ after: { kind, rows } }) => [kind, rows])).toEqual([
      ['importRows', 5_000],
      ['importRows', 5_000],
      ['importRows', 2_000],
    ]);
  });

  test('waits for the end of the job that runs the import', async () => {
    const { tenant } = await newTenant();
    const [jobId = ''] = await seedJobs(db(), { tenant, days: IMPORT_DAYS, status: 'running' });
    const imported = await seedImport(db(), { tenant, days: IMPORT_DAYS, jobId, rows: 2 });
    expect(await purge()).toEqual({});
    expect(await importRowsOf(imported)).toBe(2);
    await endJob(jobId);
    expect(await purgeAgain()).toEqual({ importRows: 2 });
  });
});

describe('the purge keeps', () => {
  test('a run that is buffered, or whose job runs, however old', async () => {
    const { tenant, owner } = await newTenant();
    const scheduleId = await createIdleSchedule(owner);
    const runs = await seedRuns(db(), { tenant, days: RUN_DAYS, scheduleId, count: 23 });
    const [buffered = '', running = '', skipped = ''] = runs;
    const [jobId = ''] = await seedJobs(db(), { tenant, days: 1, status: 'running' });
    const change = (id: string, to: object) =>
      db()('schedule_runs')
        .where({ id })
        .update({ reason: null, ...to });
    await change(buffered, { outcome: 'buffered' });
    await change(running, { outcome: 'fired', job_id: jobId });
    expect(await purge()).toEqual({ scheduleRuns: 1 });
    const existing = () =>
      db()('schedule_runs').where({ tenant_id: tenant }).orderBy('id').pluck('id');
    expect(await existing()).toEqual(runs.filter((id) => id !== skipped));
    await endJob(jobId);
    expect(await purgeAgain()).toEqual({ scheduleRuns: 1 });
    expect(await existing()).toEqual(runs.filter((id) => id !== skipped && id !== running));
  });

  test('a job whose import has rows', async () => {
    const { tenant, owner } = await newTenant();
    await owner.put(`/api/retention/${tenant}`, { days: { importRows: null } }).expect(200);
    const [jobId = ''] = await seedJobs(db(), { tenant, days: JOB_DAYS, count: 21 });
    const imported = await seedImport(db(), { tenant, days: JOB_DAYS, jobId });
    expect(await purge()).not.toHaveProperty('jobs');
    expect(await importRowsOf(imported)).toBe(1);
    await db()('import_rows').where({ import_id: imported }).delete();
    // The job, and its import.
    expect(await purgeAgain()).toEqual({ jobs: 2 });
  });

  test('a job whose restore is not complete', async () => {
    const { tenant } = await newTenant();
    const [jobId = ''] = await seedJobs(db(), { tenant, days: JOB_DAYS, count: 21 });
    const backupId = app.deps.ids.next('bkp');
    const at = daysAgo(JOB_DAYS);
    await db()('backups').insert({
      id: backupId,
      tenant_id: tenant,
      mode: 'partial',
      sections: '[]',
      includes: '[]',
      engine: 'portable',
      label: '',
      retention: '{}',
      status: 'completed',
      store: 'folder',
      archive: 'none',
      size_bytes: 1,
      created_by: 'olga',
      created_at: at,
      updated_at: at,
      finished_at: at,
      check_at: at,
    });
    await db()('restore_runs').insert({
      job_id: jobId,
      backup_id: backupId,
      tenant_id: tenant,
      purpose: 'restore',
      created_at: at,
    });
    expect(await purge()).not.toHaveProperty('jobs');
    await db()('restore_runs')
      .where({ job_id: jobId })
      .update({ outcome: '{}', done_at: new Date() });
    // The job, and its restore.
    expect(await purgeAgain()).toEqual({ jobs: 2 });
  });
});
