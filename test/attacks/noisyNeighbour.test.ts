import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JobRecord } from '../../api/jobs/schemas.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { startApp, type TestApp } from '../support/app.ts';
import type { TestClient } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';

/**
 * What one tenant does must not hold up another one. Judged by counting who holds what, and by what
 * ends while the noisy tenant still holds all it may; never by the clock.
 */
let app: TestApp;
let noisy: TestClient;
let quiet: TestClient;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_MAX_ACTIVITY_RUNS: '8', HOLDFAST_RECONCILE_SECONDS: '1' });
  noisy = app.client.as({ tenant: 'noisy' });
  quiet = app.client.as({ tenant: 'quiet' });
});
afterAll(() => app.stop());

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
    await app.deps.temporal.call(10_000, (client) =>
      client.workflow.getHandle(`job:${ids[2] ?? ''}`).terminate(),
    );
    await db()('jobs')
      .where({ id: ids[2] })
      .update({ checked_at: new Date(0) });
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
