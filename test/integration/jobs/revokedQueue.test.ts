import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import type { AuditEntryRecord } from '../../../api/audit/routes.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { ScheduleRecord } from '../../../api/schedules/schemas.ts';
import { startAppOn, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { createDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { createToken } from '../../support/tokens.ts';
import { admin, createUser, seedTenant, type Page } from '../../support/users.ts';

/** Jobs that wait for a slot. A tenant has two slots here. */
let database: Awaited<ReturnType<typeof createDatabase>>;
let app: TestApp;
let root: TestClient;
beforeAll(async () => {
  database = await createDatabase();
  app = await startAppOn(database.url, { HOLDFAST_MAX_ACTIVITY_RUNS: '4' });
  root = admin(app);
});
afterAll(async () => {
  await app.stop();
  await database.drop();
});

/** The slots are free for the next test. */
afterEach(async () => {
  const running = () =>
    app.deps.db('jobs').whereIn('status', ['queued', 'running']).orderBy('id', 'desc').pluck('id');
  for (const id of (await running()) as string[]) await root.post(`/api/jobs/${id}/cancel`);
  await eventually(running, (ids: string[]) => ids.length === 0);
});

let tenants = 0;
async function newTenant(): Promise<string> {
  const id = `t${tenants++}`;
  await seedTenant(app, id);
  return id;
}
const operator = (tenantId: string) => createUser(app, { roleId: 'operator', tenantId });
const LONG_SLEEP = { type: 'core.sleep', payload: { durationMs: 60_000 } };

const create = async (client: TestClient, count: number): Promise<string[]> => {
  const ids: string[] = [];
  for (let n = 0; n < count; n++)
    ids.push((await client.post<JobRecord>('/api/jobs', LONG_SLEEP).expect(201)).id);
  return ids;
};
const jobsOf = (ids: readonly string[]): Promise<JobRecord[]> =>
  Promise.all(ids.map((id) => root.get<JobRecord>(`/api/jobs/${id}`).expect(200)));

/** Jobs of a client: two that run, and some that wait. */
async function fillQueue(client: TestClient, waiting: number): Promise<string[]> {
  const running = await create(client, 2);
  await eventually(
    () => jobsOf(running),
    (jobs) => jobs.every(({ status }) => status === 'running'),
  );
  return create(client, waiting);
}
const FAILED = { status: 'failed', attempts: 0, error: { code: 'permission_lost' } };

test('fail together when the account is disabled, without ever getting a slot', async () => {
  const tenantId = await newTenant();
  const { id: userId, client } = await operator(tenantId);
  const ids = await fillQueue(client, 6);
  const schedule = await client
    .post<ScheduleRecord>('/api/schedules', {
      name: 'yearly',
      cronExpression: '0 3 1 1 *',
      jobType: LONG_SLEEP.type,
      payload: LONG_SLEEP.payload,
      retryPolicy: { maxAttempts: 1 },
    })
    .expect(201);
  await client.post(`/api/schedules/${schedule.id}/trigger`).expect(202);
  const ofSchedule = () =>
    app.deps.db('jobs').where({ source_id: schedule.id, status: 'queued' }).pluck('id');
  const [scheduled = ''] = await eventually(ofSchedule, (some: string[]) => some.length === 1);
  const others = await create((await operator(tenantId)).client, 1);
  const answer = root.get<JobRecord>(`/api/jobs/${ids[0] ?? ''}`, { prefer: 'wait=20' });

  await root.put(`/api/users/${userId}`, { enabled: false }).expect(200);
  // The running ones end when their attempts have stopped; these have ended with the request.
  const jobs = await jobsOf([...ids, scheduled]);
  expect(jobs).toMatchObject(jobs.map(() => FAILED));
  expect((await answer.expect(200)).status).toBe('failed');
  expect(jobs[0]?.logs).toMatchObject([{ line: 1, level: 'error', attempt: 0 }]);
  expect(await jobsOf(others)).not.toMatchObject([FAILED]);

  const commits = new Set<string>();
  for (const id of ids) {
    const path = `/api/audit?subjectId=${id}&action=job.fail`;
    const { items } = await root.get<Page<AuditEntryRecord>>(path).expect(200);
    expect(items).toMatchObject([{ tenantId, actorId: 'system', after: { status: 'failed' } }]);
    commits.add(items[0]?.at ?? '');
    expect(await app.deps.describeWorkflow(`job:${id}`)).toEqual({ found: false });
  }
  expect(commits.size).toBe(1);
  const events = app.deps.db('events').where({ type: 'job.failed', tenant_id: tenantId });
  expect((await events.pluck('subject_id')).toSorted()).toEqual([...ids, scheduled].toSorted());
  const used = async () =>
    (await root.get<{ used: Record<string, number> }>(`/api/quotas/${tenantId}`).expect(200)).used;
  await eventually(used, ({ unfinishedJobs }) => unfinishedJobs === 1);
});

test('fail when the token is revoked; those that its owner has created wait on', async () => {
  const owner = await operator(await newTenant());
  const token = await createToken(app, owner);
  const ids = await fillQueue(token.client, 2);
  const others = await create(owner.client, 1);
  await owner.client.delete(`/api/auth/tokens/${token.id}`).expect(204);
  expect(await jobsOf(ids)).toMatchObject([FAILED, FAILED]);
  expect(await jobsOf(others)).not.toMatchObject([FAILED]);
});

test('fail by the reconciler, if a restore has deleted the account', async () => {
  const user = await operator(await newTenant());
  const ids = await fillQueue(user.client, 2);
  await app.deps.db('sessions').where({ user_id: user.id }).delete();
  await app.deps.db('grants').where({ user_id: user.id }).delete();
  await app.deps.db('users').where({ id: user.id }).delete();
  await app.deps.reconcile.reconcileJobs(new AbortController().signal);
  expect(await jobsOf(ids)).toMatchObject([FAILED, FAILED]);
});
