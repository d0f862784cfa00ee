import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { ScheduleRecord } from '../../../api/schedules/schemas.ts';
import type { JobTools } from '../../../domain/jobs/jobType.ts';
import { retentionPurge } from '../../../services/jobTypes/retention/purge.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { seedJobs } from '../../support/retention.ts';
import { admin } from '../../support/users.ts';

const DAY_MS = 86_400_000;

let app: TestApp;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
});
afterAll(() => app.stop());

/** Runs `work` in a process whose clock is ahead. */
async function withClockAhead<T>(ms: number, work: () => Promise<T>): Promise<T> {
  const RealDate = Date;
  globalThis.Date = class extends RealDate {
    constructor(...args: [] | [number | string | Date]) {
      super(...((args.length === 0 ? [RealDate.now() + ms] : args) as [number]));
    }
    static override now = () => RealDate.now() + ms;
  } as DateConstructor;
  try {
    return await work();
  } finally {
    globalThis.Date = RealDate;
  }
}

const purge = () => {
  const { deps } = app;
  const tools = { progress: () => undefined, log: () => undefined, jobId: 'job_x' };
  const type = retentionPurge(deps);
  if (type.lane !== 'activity') throw new Error('The purge is an activity');
  return type.run({}, tools as unknown as JobTools);
};

test('a purge deletes nothing if its clock differs from that of the database by minutes', async () => {
  const [id] = await seedJobs(app.deps.db, { tenant: 'platform', days: 10 });
  for (const ms of [400 * DAY_MS, 6 * 60_000, -6 * 60_000])
    await expect(withClockAhead(ms, purge)).rejects.toMatchObject({
      code: 'clocks_differ',
      retryable: true,
    });
  expect(await app.deps.db('job_logs').where({ job_id: id })).toHaveLength(2);
});

test('a reconciler whose clock is ahead keeps what has not expired', async () => {
  const key = { 'idempotency-key': 'kept' };
  const job = { type: 'core.echo', payload: {} };
  await admin(app).post('/api/jobs', job, key).expect(201);
  await withClockAhead(9 * DAY_MS, () => app.deps.reconcile.purge(AbortSignal.timeout(20_000)));
  expect(await app.deps.db('idempotency_keys')).toHaveLength(1);
});

test('a process whose clock is ahead does not skip occurrences that are to come', async () => {
  const { db, catchUp } = app.deps;
  const { id } = await admin(app)
    .post<ScheduleRecord>('/api/schedules', {
      name: 'hourly',
      cronExpression: '0 * * * *',
      jobType: 'core.echo',
      payload: {},
    })
    .expect(201);
  const { next_due_at: next } = await db('schedules').where({ id }).first();
  await withClockAhead(9 * DAY_MS, () => catchUp.catchUpAll(AbortSignal.timeout(20_000)));
  expect(await db('schedule_runs').where({ schedule_id: id })).toEqual([]);
  expect((await db('schedules').where({ id }).first()).next_due_at).toEqual(next);
});
