import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { EventList } from '../../../api/events/schemas.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { PreviewRecord } from '../../../api/retention/schemas.ts';
import type { WebhookRecord } from '../../../api/webhooks/schemas.ts';
import { assignedToApprovers } from '../../support/approvals.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { ProblemBody } from '../../support/client.ts';
import { expectProblem } from '../../support/problem.ts';
import { eventually } from '../../support/eventually.ts';
import {
  daysAgo,
  createIdleWebhook,
  seedDelivery,
  seedEvents,
  seedJobs,
  startPurgeRun,
} from '../../support/retention.ts';
import { stopUpdates } from '../../support/stopPoints.ts';
import { admin, type Page } from '../../support/users.ts';

const COUNTED = 'counted';
const FOLLOWED = 'followed';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
  // The log begins with the oldest events.
  await seedEvents(db(), { tenant: COUNTED, days: 100, count: 5 });
  await seedEvents(db(), { tenant: FOLLOWED, days: 91, count: 3 });
});
afterAll(() => app.stop());

const db = () => app.deps.db;

let tenants = 0;
async function newTenant(tenant = `past${tenants++}`) {
  await admin(app).post('/api/inventory/tenants', { id: tenant, name: tenant }).expect(201);
  return {
    tenant,
    client: app.client.as({ tenant }),
    owner: app.client.as({ actor: 'olga', roles: 'platform-admin', tenant }),
  };
}

async function purge(now = new Date()): Promise<Record<string, number>> {
  const rows: Record<string, number> = {};
  const run = await startPurgeRun(db());
  try {
    await app.deps.purge.run(run, now, Infinity, (kind, more) => {
      if (more > 0) rows[kind] = (rows[kind] ?? 0) + more;
    });
  } finally {
    await db()('jobs').where({ id: run.jobId }).delete();
  }
  return rows;
}

test('a preview counts what the next purge deletes', async () => {
  const { tenant, client, owner } = await newTenant(COUNTED);
  await seedJobs(db(), { tenant, days: 450, count: 22, lines: 2 });
  await seedJobs(db(), { tenant, days: 50, count: 1, lines: 4 });
  const preview = async (change: object = {}) => {
    const { kinds } = await owner
      .post<PreviewRecord>('/api/retention/preview', { tenantId: tenant, ...change })
      .expect(200);
    for (const { total, months } of kinds)
      expect(months.reduce((sum, { count }) => sum + count, 0)).toBe(total);
    return Object.fromEntries(kinds.map(({ kind, total }) => [kind, total]));
  };
  const none = { scheduleRuns: 0, deliveries: 0, importRows: 0 };
  expect(await preview()).toEqual({ ...none, jobLogs: 44, jobData: 22, jobs: 3, events: 5 });
  expect(await preview({ days: { jobLogs: 20, events: null } })).toMatchObject({
    jobLogs: 48,
    events: 0,
  });
  await client.post('/api/retention/preview', { tenantId: tenant }).expect(403);
  const other = await newTenant();
  await other.owner.post('/api/retention/preview', { tenantId: tenant }).expect(404);
  expect(await purge()).toEqual({ jobLogs: 44, jobData: 22, jobs: 3, events: 5 + 3 });
});

test('a purge is a job that starts when it is due, and only one', async () => {
  const { tenant } = await newTenant();
  await seedJobs(db(), { tenant, days: 91, lines: 3 });
  const start = () => app.deps.housekeeping.run(new AbortController().signal);
  const purges = () => db()('jobs').where({ type: 'retention.purge' });
  await start();
  expect(await purges()).toEqual([]);
  await db()('purge_state').update({ next_at: new Date(0) });
  await Promise.all([start(), start()]);
  const jobs = await eventually(purges, (found) =>
    found.every(({ status }: { status: string }) => status === 'succeeded'),
  );
  expect(jobs).toHaveLength(1);
  const job = await admin(app).get<JobRecord>(`/api/jobs/${jobs[0].id}`).expect(200);
  expect(job).toMatchObject({
    tenantId: 'platform',
    source: { kind: 'system' },
    result: { complete: true, rows: { jobLogs: 3, jobData: 1 } },
  });
  const metrics = await app.deps.metrics.text();
  expect(metrics).toMatch(/holdfast_retention_lag_seconds \d/);
  expect(metrics).toContain('holdfast_retention_purged_rows_total{kind="jobLogs"} 3');
});

test('a purge that is interrupted loses nothing and repeats nothing', async () => {
  const { tenant } = await newTenant();
  const jobs = await seedJobs(db(), { tenant, days: 91, lines: 1, count: 6_000 });
  const nth = jobs[5_500] ?? '';
  const stop = await stopUpdates(app.databaseUrl, 'jobs', {
    second: `NEW.id = '${nth}' AND NEW.data_purged_at IS NOT NULL`,
  });
  const interrupted = purge();
  const failed = expect(interrupted).rejects.toThrow();
  await stop.untilStopped('second');
  await stop.remove();
  await failed;
  const withData = () =>
    db()('jobs').where({ tenant_id: tenant }).whereNull('data_purged_at').count('* as n').first();
  expect(await withData()).toMatchObject({ n: 1_000 });
  expect(await purge()).toEqual({ jobData: 1_000 });
  const entries: { after: { kind: string; records: number } }[] = await db()('audit_entries')
    .where({ action: 'retention.purge', tenant_id: tenant })
    .select('after');
  const of = (kind: string) =>
    entries.flatMap(({ after }) => (after.kind === kind ? after.records : []));
  expect(of('jobData').reduce((sum, each) => sum + each, 0)).toBe(6_000);
  expect(of('jobLogs').reduce((sum, each) => sum + each, 0)).toBe(6_000);
});

test('what is purged is named, never a dead link', async () => {
  const { tenant, client } = await newTenant();
  const [old = '', purged = ''] = await seedJobs(db(), { tenant, days: 91, count: 2, lines: 2 });
  const [retry = ''] = await seedJobs(db(), { tenant, days: 1 });
  await db()('jobs').where({ id: retry }).update({ retry_of: purged });
  await purge();
  await db()('jobs').where({ id: purged }).delete();
  expect(await client.get<JobRecord>(`/api/jobs/${old}`).expect(200)).toMatchObject({
    dataPurgedAt: expect.any(String),
    logsPurged: true,
    workflowForgotten: true,
    retried: null,
  });
  expect(await client.get<JobRecord>(`/api/jobs/${retry}`).expect(200)).toMatchObject({
    dataPurgedAt: null,
    logsPurged: false,
    retried: { id: purged, purged: true },
  });
  for (const query of ['', '?follow=true']) {
    const request = client.get(`/api/jobs/${old}/logs${query}`);
    expect(await expectProblem(request, 410, 'log_purged')).toMatchObject({ oldestLine: 3 });
  }
  await expectProblem(client.post(`/api/jobs/${old}/retry`), 409, 'job_not_retryable');
});

test('every record that names a job says whether it is purged', async () => {
  const { tenant, client } = await newTenant();
  const { db: knex, ids } = app.deps;
  const [jobId = ''] = await seedJobs(knex, { tenant, days: 1, lines: 0 });
  const webhookId = await createIdleWebhook(client);
  const [eventId = ''] = await seedEvents(knex, { tenant, days: 1 });
  const delivery = { tenant, days: 1, webhookId, eventId, status: 'failed' };
  const deliveryId = await seedDelivery(knex, delivery);
  await knex('deliveries').where({ id: deliveryId }).update({ job_id: jobId });
  await knex('delivery_attempts').where({ delivery_id: deliveryId }).update({ job_id: jobId });
  const { id: approvalId } = await client
    .post<{ id: string }>('/api/workflows', { title: 'Ended', ...assignedToApprovers })
    .expect(201);
  await knex('approvals').where({ id: approvalId }).update({ job_id: jobId });
  const backupId = ids.next('bkp');
  await knex('backups').insert({
    id: backupId,
    tenant_id: tenant,
    mode: 'full',
    sections: '[]',
    includes: '[]',
    engine: 'snapshot',
    label: '',
    retention: '{}',
    status: 'completed',
    job_id: jobId,
    size_bytes: 1,
    finished_at: new Date(),
    store: 'folder',
    archive: 'x',
    created_by: 'alice',
    created_at: new Date(),
    updated_at: new Date(),
    check_at: new Date(),
  });
  type Named = { jobId: string; job: object | null; workflowId: string | null };
  const read = async () => {
    const sent = await client
      .get<Named & { attempts: Named[] }>(`/api/deliveries/${deliveryId}`)
      .expect(200);
    const backups = await admin(app).get<{ backups: (Named & { id: string })[] }>('/api/backup');
    return [
      sent,
      ...sent.attempts,
      await client.get<Named>(`/api/workflows/${approvalId}`).expect(200),
      (await client.get<Page<Named>>('/api/workflows').expect(200)).items[0],
      await admin(app).get<Named>(`/api/backup/${backupId}`).expect(200),
      backups.body.backups.find(({ id }) => id === backupId),
    ].map((named) => [named?.jobId, named?.job]);
  };
  const all = (purged: boolean) => Array(6).fill([jobId, { id: jobId, purged }]);
  expect(await read()).toEqual(all(false));
  await knex('jobs').where({ id: jobId }).delete();
  expect(await read()).toEqual(all(true));
  const { workflowId } = await client.get<Named>(`/api/deliveries/${deliveryId}`).expect(200);
  expect(workflowId).toBeNull();
});

test('followers of purged events learn where to continue, each of its own tenants', async () => {
  const [red, blue] = [await newTenant(FOLLOWED), await newTenant()];
  await seedEvents(db(), { tenant: blue.tenant, days: 2, count: 1 });
  const [kept = ''] = await seedEvents(db(), { tenant: red.tenant, days: 2 });
  await purge();
  const refused = await expectProblem(red.client.get('/api/events?after=0'), 410, 'events_purged');
  const followed = red.client.get('/api/events?after=0&follow');
  expect(await expectProblem(followed, 410, 'events_purged')).toMatchObject({
    oldestSequence: refused.oldestSequence,
  });
  const after = Number(refused.oldestSequence) - 1;
  const found = await red.client.get<EventList>(`/api/events?after=${after}`).expect(200);
  expect(found.items.map(({ id }) => id)).toContain(kept);
  await blue.client.get('/api/events?after=0').expect(200);

  const webhookOf = async ({ client }: typeof red) => {
    const webhook = { endpointUrl: 'https://example.net/', eventTypes: ['job.failed'] };
    return (await client.post<WebhookRecord>('/api/webhooks', webhook).expect(201)).id;
  };
  const replay = (client: typeof red.client, id: string, from: object) =>
    client.post<ProblemBody>(`/api/webhooks/${id}/replay`, from);
  const [redHook, blueHook] = [await webhookOf(red), await webhookOf(blue)];
  for (const from of [{ afterSequence: 0 }, { since: daysAgo(95).toISOString() }])
    expect(
      await expectProblem(replay(red.client, redHook, from), 410, 'events_purged'),
    ).toMatchObject({ oldestSequence: refused.oldestSequence });
  await replay(red.client, redHook, { afterSequence: after }).expect(202);
  await replay(blue.client, blueHook, { afterSequence: 0 }).expect(202);
  await red.client.get('/api/events').expect(200);
});

test('months of log lines are dropped when nobody keeps them and their jobs have ended', async () => {
  const { tenant, owner } = await newTenant();
  const { logMonths } = app.deps;
  const past = daysAgo(200);
  await db().raw('ALTER TABLE job_logs DETACH PARTITION job_logs_earlier');
  await db().raw('SELECT create_job_log_month(?)', [past]);
  const month = `job_logs_${past.toISOString().slice(0, 7).replace('-', '_')}`;
  const jobs = await seedJobs(db(), { tenant, days: 200, lines: 2 });
  const [unfinished = ''] = await seedJobs(db(), { tenant, days: 200, status: 'running' });
  expect(await db()(month).count('* as n').first()).toMatchObject({ n: 4 });
  const drop = () => logMonths.drop('job_x', new Date());
  expect(await drop()).toEqual([]);
  await db()('jobs')
    .where({ id: unfinished })
    .update({ status: 'failed', finished_at: new Date() });
  await owner.put(`/api/retention/${tenant}`, { days: { jobLogs: 300 } }).expect(200);
  expect(await drop()).toEqual([]);
  await owner.delete(`/api/retention/${tenant}`).expect(204);
  // A month that jobs of other tests read is dropped by the next purge.
  expect(await eventually(drop, (dropped) => dropped.length > 0)).toEqual([month]);
  expect(await db()('purge_marks').where({ kind: 'jobLogs', tenant_id: '' })).toHaveLength(1);
  // Lines outside of all months are purged line by line.
  await seedJobs(db(), { tenant, days: 200, lines: 2 });
  expect(await purge()).toMatchObject({ jobLogs: 2 });
  expect(jobs).toHaveLength(1);
  await logMonths.create(new Date());
});
