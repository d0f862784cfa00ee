import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { openDatabase } from '../../../db/core/knex.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { INSTALLATION_GAUGES } from '../../../platform/metrics/installationGauges.ts';
import { createReadInstallationState } from '../../../services/operations/installationState.ts';
import { startApp, type TestApp } from '../../support/app.ts';

/** No process does background work: what is committed stays unpublished, unsealed and unsent. */
let app: TestApp;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
});
afterAll(() => app.stop());

const db = () => app.deps.db;

/** The state as a process reads it that has just started. */
const read = async () =>
  assertDefined(await createReadInstallationState(app.deps)(), 'the state of the installation');

/** Makes the next reader measure. */
const measuredLongAgo = (seconds: number) =>
  db().raw(`UPDATE installation_state SET measured_at = measured_at - ? * interval '1 second'`, [
    seconds,
  ]);

const valueOf = (text: string, series: string): number | undefined => {
  const line = text.split('\n').find((each) => each.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
};

test('the state of the installation has what waits, and how long; processes share one measurement', async () => {
  const empty = await read();
  expect(empty).toMatchObject({ jobsQueued: 0, outboxTasks: 0, schedulesLate: 0 });
  expect(empty).toMatchObject({ lastBackupAgeSeconds: null, lastTestedBackupAgeSeconds: null });

  const job = { type: 'core.echo', payload: { message: 'x' } };
  await app.client.post('/api/jobs', job).expect(201);
  await app.client.post('/api/jobs', job).expect(201);
  await db()('jobs').update({ created_at: new Date(Date.now() - 60_000) });
  // Ten seconds long all processes show what one of them has measured.
  expect(await read()).toMatchObject({ jobsQueued: 0 });
  await measuredLongAgo(11);
  const state = await read();
  expect(state).toMatchObject({ jobsQueued: 2, jobsRunning: 0, remoteJobsQueued: 0 });
  expect(state).toMatchObject({ outboxTasks: 2, eventsUnpublished: 2, auditUnsealed: 2 });
  expect(state.oldestQueuedJobSeconds).toBeGreaterThan(59);
  expect(state.oldestUnsealedAuditSeconds).toBeGreaterThan(0);
  expect(state.ageSeconds).toBeLessThan(5);
});

test('schedules that are late, missed runs and backups are counted', async () => {
  const schedule = await app.client
    .post<{ id: string }>('/api/schedules', {
      name: 'nightly',
      cronExpression: '0 3 * * *',
      timezone: 'UTC',
      jobType: 'core.echo',
      payload: { message: 'x' },
    })
    .expect(201);
  const ago = (seconds: number) => new Date(Date.now() - seconds * 1_000);
  await db()('schedules')
    .where({ id: schedule.id })
    .update({ next_due_at: ago(125) });
  const { ids } = app.deps;
  await db()('schedule_runs').insert({
    id: ids.next('run'),
    schedule_id: schedule.id,
    tenant_id: 'default',
    kind: 'scheduled',
    due_at: ago(3_600),
    outcome: 'skipped',
    reason: 'missed',
    caught_up: false,
    actor_id: 'alice',
    decided_at: ago(1),
  });
  const backup = (snapshotAt: Date, more: object = {}) =>
    db()('backups').insert({
      ...{ id: ids.next('bkp'), tenant_id: 'platform', mode: 'full', sections: '[]' },
      ...{ includes: '[]', engine: 'snapshot', label: 'daily', retention: '{}' },
      ...{ status: 'completed', store: 'folder', archive: 'a', size_bytes: 1 },
      ...{ created_by: 'root', created_at: ago(0), updated_at: ago(0), finished_at: ago(0) },
      ...{ check_at: ago(0), snapshot_at: snapshotAt, ...more },
    });
  await backup(ago(7_200), { restore_tested_at: ago(0) });
  await backup(ago(3_600));
  const archiveError = { code: 'archive_damaged', message: 'The archive is damaged.' };
  await backup(ago(20), { archive_error: archiveError, restore_tested_at: ago(10) });
  await backup(ago(10), { mode: 'partial' });
  await backup(ago(10), { tenant_id: 'red' });
  await measuredLongAgo(11);
  const state = await read();
  expect(state).toMatchObject({ schedulesLate: 1, runsMissed: 1 });
  expect(Math.round(state.scheduleLatenessSeconds / 10)).toBe(12);
  expect(Math.round(Number(state.lastBackupAgeSeconds) / 100)).toBe(36);
  expect(Math.round(Number(state.lastTestedBackupAgeSeconds) / 100)).toBe(72);
});

test('without an answer of the database the last values stay, and get older', async () => {
  const { metrics } = app.deps;
  const known = await read();
  const own = openDatabase({
    url: app.databaseUrl,
    poolSize: 1,
    statementTimeoutMs: 0,
    log: app.deps.log,
  });
  const readAway = createReadInstallationState({ db: own, cacheMs: 0 });
  await readAway();
  await own.destroy();
  expect(await readAway()).toMatchObject({ jobsQueued: known.jobsQueued });
  expect(await createReadInstallationState({ db: own })()).toBeUndefined();
  const text = await metrics.text();
  for (const [name] of Object.values(INSTALLATION_GAUGES)) expect(text).toContain(`TYPE ${name} `);
});

test('requests are counted by route and class of status, with few series', async () => {
  const { client, deps } = app;
  await client.get('/api/jobs').expect(200);
  await client.get('/api/jobs/job_none').expect(404);
  await client.get('/api/nothing').expect(404);
  await client.send('PROPFIND', '/api/nothing-else');
  await client.get('/api/jobs', { prefer: 'wait=5' }).expect(200);
  const invalid = { type: 'core.echo' };
  await client.post('/api/jobs', invalid).expect(400);
  await client.post('/api/jobs', invalid, { prefer: 'wait=5' }).expect(400);
  const text = await deps.metrics.text();
  const count = (labels: string) => valueOf(text, `holdfast_http_request_seconds_count{${labels}}`);
  // The preference means nothing where there is nothing to wait for.
  expect(count('method="GET",path="/api/jobs",status="2xx",waits="false"')).toBe(2);
  expect(count('method="GET",path="/api/jobs/{jobId}",status="4xx",waits="false"')).toBe(1);
  expect(count('method="POST",path="/api/jobs",status="4xx",waits="false"')).toBe(1);
  expect(count('method="POST",path="/api/jobs",status="4xx",waits="true"')).toBe(1);
  expect(count('method="GET",path="none",status="4xx",waits="false"')).toBe(1);
  expect(count('method="other",path="none",status="4xx",waits="false"')).toBe(1);
  expect(valueOf(text, 'holdfast_http_responses_total{status="404"}')).toBeGreaterThanOrEqual(2);
  expect(valueOf(text, 'holdfast_commit_seconds_count{outcome="committed"}')).toBeGreaterThan(2);
  expect(valueOf(text, 'holdfast_ready{component="postgres"}')).toBe(1);
});
