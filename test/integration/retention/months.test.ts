import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DAY_MS } from '../../../domain/shared/durations.ts';
import { lockTenant } from '../../../db/access/quotas.ts';
import { saveRetention } from '../../../db/retention/settings.ts';
import { createIds } from '../../../platform/ids.ts';
import { createLog } from '../../../platform/log.ts';
import { createLogMonths } from '../../../services/retention/logMonths.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { seedJobs, waitsForLock } from '../../support/retention.ts';
import { admin } from '../../support/users.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
});
afterAll(() => app.stop());

const db = () => app.deps.db;
/** The days ago, for `seedJobs`, of a time that is still to come. */
const daysUntil = (time: string) => (Date.now() - Date.parse(time)) / DAY_MS;

async function partitionOf(jobId: string): Promise<string | undefined> {
  const { rows } = await db().raw<{ rows: { name: string }[] }>(
    'SELECT DISTINCT tableoid::regclass::text AS name FROM job_logs WHERE job_id = ?',
    [jobId],
  );
  return rows[0]?.name;
}

test('the present month gets its partition, also after months without a purge', async () => {
  const id = createIds().at('job', new Date('2130-05-10T00:00:00Z'));
  const line = { job_id: id, attempt: 1, level: 'info', message: 'm', at: new Date() };
  await db()('job_logs').insert({ ...line, line: 1 });
  expect(await partitionOf(id)).toBe('job_logs_other');
  for (const day of ['2130-05-15', '2130-05-31']) await app.deps.logMonths.create(new Date(day));
  expect(await partitionOf(id)).toBe('job_logs_2130_05');
  const next = createIds().at('job', new Date('2130-07-31T23:59:59Z'));
  await db()('job_logs').insert({ ...line, job_id: next, line: 1 });
  expect(await partitionOf(next)).toBe('job_logs_2130_07');
  await db()('job_logs').delete();
});

test('the rest of a month gets its partition when too many lines of it are outside of all months', async () => {
  const warnings: object[] = [];
  const log = createLog('silent', false);
  log.warn = (what: object) => void warnings.push(what);
  const errors: object[] = [];
  log.error = (what: object) => void errors.push(what);
  const logMonths = createLogMonths({ ...app.deps, log });
  const at = (time: string) => createIds().at('job', new Date(time));
  const early = at('2133-05-10T00:00:00Z');
  const write = (jobId: string, lines: number) =>
    db().raw(
      `INSERT INTO job_logs (job_id, line, attempt, level, message, at)
       SELECT ?, line, 1, 'info', '', now() FROM generate_series(1, ?::int) AS line`,
      [jobId, lines],
    );
  await write(early, 20_001);
  // The month cannot be created; the purge goes on, and the next months are there.
  const ofOtherClock = at('2133-05-15T02:00:00Z');
  await write(ofOtherClock, 1);
  await logMonths.create(new Date('2133-05-15T00:00:00Z'));
  expect([warnings, errors]).toMatchObject([[], [{ month: 0, err: { code: '23514' } }]]);
  await db()('job_logs').where({ job_id: ofOtherClock }).delete();
  await logMonths.create(new Date('2133-05-15T00:00:00Z'));
  const [soon, later] = [at('2133-05-15T00:05:00Z'), at('2133-05-15T00:15:00Z')];
  for (const jobId of [soon, later]) await write(jobId, 1);
  expect([await partitionOf(early), await partitionOf(soon), await partitionOf(later)]).toEqual([
    'job_logs_other',
    'job_logs_other',
    'job_logs_2133_05',
  ]);
  // What is there already is not created again, so its writers do not wait.
  const trx = await db().transaction();
  try {
    await trx.raw('LOCK TABLE job_logs_other IN ROW EXCLUSIVE MODE');
    await logMonths.create(new Date('2133-05-16T00:00:00Z'));
    expect(warnings).toEqual([]);
    await logMonths.create(new Date('2133-06-16T00:00:00Z'));
  } finally {
    await trx.rollback();
  }
  expect(warnings).toEqual([{ month: 2, movable: true }]);
  await db()('job_logs').delete();
});

test('a month is dropped with its lines when no job, hold or period keeps one', async () => {
  const tenant = 'monthly';
  const root = admin(app);
  await root.post('/api/inventory/tenants', { id: tenant, name: tenant }).expect(201);
  await app.deps.logMonths.create(new Date('2131-05-15'));
  const [ended = ''] = await seedJobs(db(), { tenant, days: daysUntil('2131-05-10'), lines: 3 });
  const [running = ''] = await seedJobs(db(), {
    tenant,
    days: daysUntil('2131-05-11'),
    status: 'running',
  });
  const drop = () => app.deps.logMonths.drop('job_purge', new Date('2132-01-01'));
  const isKept = async () => {
    await drop();
    return (await partitionOf(ended)) === 'job_logs_2131_05';
  };
  expect(await isKept()).toBe(true);
  await db()('jobs')
    .where({ id: running })
    .update({ status: 'succeeded', finished_at: new Date() });

  const { id: holdId } = await root
    .post<{ id: string }>('/api/legal-holds', { reason: 'Case 7', tenantId: tenant })
    .expect(201);
  expect(await isKept()).toBe(true);
  await root.post(`/api/legal-holds/${holdId}/release`, { reason: 'closed' }).expect(200);

  // A period that is changed while the month is dropped.
  const trx = await db().transaction();
  try {
    await lockTenant(trx, tenant);
    const kept = { tenantId: tenant, days: { jobLogs: null }, jobTypes: {}, version: 1 };
    await saveRetention(trx, kept, new Date());
    let hasEnded = false;
    const dropping = drop().finally(() => (hasEnded = true));
    await eventually(async () => hasEnded || (await waitsForLock(db())), Boolean);
    await trx.commit();
    await dropping;
  } finally {
    await trx.rollback().catch(() => undefined);
  }
  expect(await isKept()).toBe(true);

  await root.delete(`/api/retention/${tenant}`).expect(204);
  expect(await drop()).toContain('job_logs_2131_05');
  expect(await db()('job_logs').whereIn('job_id', [ended, running])).toEqual([]);
  const mark = await db()('purge_marks').where({ kind: 'jobLogs', tenant_id: '' }).first();
  expect(mark?.until_id > running).toBe(true);
});
