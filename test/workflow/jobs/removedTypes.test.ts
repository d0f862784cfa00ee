import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DAY_MS } from '../../../domain/shared/durations.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { startApp, type TestApp } from '../../support/app.ts';

const REMOVED = 'test.removed';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.stop());

/** A queued job without a workflow, of a type that an earlier version had. */
async function queuedJob(columns: { slot: 'waiting' | null; pool: string }): Promise<string> {
  const { id } = await app.client
    .post<JobRecord>('/api/jobs', { type: 'core.echo', payload: {} }, { prefer: 'wait=20' })
    .expect(201);
  await app.deps
    .db('outbox')
    .where({ workflow_id: `job:${id}` })
    .delete();
  const queued = { status: 'queued', run_id: null, workflow_id: null, attempts: 0 };
  await app.deps
    .db('jobs')
    .where({ id })
    .update({ ...queued, ...columns, type: REMOVED, finished_at: null });
  return id;
}

async function reconcile(id: string) {
  await app.deps
    .db('jobs')
    .where({ id })
    .update({ checked_at: new Date(0) });
  const repaired = await app.deps.reconcile.reconcileJobs(AbortSignal.timeout(20_000));
  return { repaired, job: await app.client.get<JobRecord>(`/api/jobs/${id}`).expect(200) };
}

const hasWaitedFor = (id: string, ms: number) =>
  app.deps
    .db('jobs')
    .where({ id })
    .update({ updated_at: new Date(Date.now() - ms) });

const WAITING = [
  ['waits for a slot', { slot: 'waiting', pool: '' }],
  ['waits for a runner', { slot: 'waiting', pool: 'former' }],
  ['has no workflow', { slot: null, pool: '' }],
] as const;

test.each(WAITING)('a job of a removed type that %s ends after a day', async (_is, columns) => {
  const id = await queuedJob(columns);
  for (const waitedMs of [0, DAY_MS - 60_000]) {
    if (waitedMs > 0) await hasWaitedFor(id, waitedMs);
    const { repaired, job } = await reconcile(id);
    expect(repaired).toBe(0);
    expect(job).toMatchObject({ status: 'queued', error: { code: 'unknown_job_type' } });
    expect(job.logs.filter(({ message }) => message.includes('is not known'))).toHaveLength(1);
  }
  await hasWaitedFor(id, DAY_MS + 1_000);
  const { repaired, job } = await reconcile(id);
  expect(repaired).toBe(1);
  expect(job).toMatchObject({ status: 'failed', error: { code: 'unknown_job_type' } });
});

test.each([
  ['knows its type', [REMOVED]],
  ['does not say which types it knows', null],
])('a job waits as long as a worker %s', async (_is, jobTypes) => {
  const id = await queuedJob({ slot: 'waiting', pool: '' });
  await reconcile(id);
  await hasWaitedFor(id, DAY_MS + 1_000);
  const worker = { id: 'wrk_other', activity_slots: 1, delivery_slots: 1, job_types: jobTypes };
  await app.deps.db('workers').insert({ ...worker, seen_at: new Date() });
  expect(await reconcile(id)).toMatchObject({ repaired: 0, job: { status: 'queued' } });
  // The day begins again when no worker knows the type any more.
  await app.deps.db('workers').where({ id: worker.id }).delete();
  expect(await reconcile(id)).toMatchObject({ repaired: 0, job: { status: 'queued' } });
  await hasWaitedFor(id, DAY_MS + 1_000);
  expect(await reconcile(id)).toMatchObject({ repaired: 1, job: { status: 'failed' } });
});
