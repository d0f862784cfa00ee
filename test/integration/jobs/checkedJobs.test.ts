import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { claimUnfinished } from '../../../db/jobs/jobs.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { admin } from '../../support/users.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
});
afterAll(() => app.stop());

const MINUTE = 60_000;

test.each([
  ['has waited for hours', { status: 'running', updated_at: hoursAgo(5) }, [5, 10]],
  ['has just changed', { status: 'running', updated_at: new Date() }, [0, 0.1]],
  ['waits for its first attempt', { status: 'queued', updated_at: hoursAgo(5) }, [0, 0]],
  ['runs on a runner', { status: 'running', pool: 'default', updated_at: hoursAgo(5) }, [0, 0]],
] as const)('the next check of a job that %s', async (_, record, [atLeast, atMost]) => {
  const { db } = app.deps;
  const { id } = await admin(app)
    .post<JobRecord>('/api/jobs', { type: 'core.echo', payload: {} })
    .expect(201);
  await db('jobs')
    .where({ id })
    .update({ ...record, checked_at: new Date(0) });
  const now = new Date();
  const claimed = await claimUnfinished(db, { before: new Date(1), now, limit: 10 });
  expect(claimed.map((job) => job.id)).toEqual([id]);
  const { checked_at: checkedAt } = await db('jobs').where({ id }).first();
  const minutes = ((checkedAt as Date).getTime() - now.getTime()) / MINUTE;
  expect(minutes).toBeGreaterThanOrEqual(atLeast);
  expect(minutes).toBeLessThanOrEqual(atMost);
});

function hoursAgo(hours: number): Date {
  return new Date(Date.now() - hours * 60 * MINUTE);
}
