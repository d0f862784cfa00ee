import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ScheduleRecord } from '../../../api/schedules/schemas.ts';
import type { JobTools } from '../../../domain/jobs/jobType.ts';
import { DAY_MS, HOUR_MS } from '../../../domain/shared/durations.ts';
import { retentionPurge } from '../../../services/jobTypes/retention/purge.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { withClockAhead } from '../../support/clock.ts';
import { seedJobs } from '../../support/retention.ts';
import { admin } from '../../support/users.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
});
afterAll(() => app.stop());

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
  await withClockAhead(9 * DAY_MS, () => app.deps.housekeeping.run(AbortSignal.timeout(20_000)));
  expect(await app.deps.db('idempotency_keys')).toHaveLength(1);
});

test('a reconciler whose clock is ahead checks no job before its time', async () => {
  const { db, reconcile } = app.deps;
  const body = { type: 'core.echo', payload: {} };
  const { id } = await admin(app).post<{ id: string }>('/api/jobs', body).expect(201);
  const row = db('jobs').where({ id });
  const checkedAt = new Date(Date.now() + DAY_MS);
  await row.clone().update({ checked_at: checkedAt });
  await withClockAhead(9 * DAY_MS, () => reconcile.reconcileJobs(AbortSignal.timeout(20_000)));
  expect((await row.clone().first()).checked_at).toEqual(checkedAt);
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

describe.each([3, -3])('a schedule that an API saves whose clock is %i hours ahead', (hours) => {
  const withClock = <T>(work: () => Promise<T>) => withClockAhead(hours * HOUR_MS, work);
  const schedules = '/api/schedules';
  const nextOf = async (id: string): Promise<number> =>
    (await app.deps.db('schedules').where({ id }).first()).next_due_at.getTime();
  const create = (fields: object = {}) =>
    admin(app)
      .post<ScheduleRecord>(schedules, {
        ...{ name: `${hours} hours ${Math.random()}`, cronExpression: '0 * * * *' },
        ...{ jobType: 'core.echo', payload: {}, ...fields },
      })
      .expect(201);

  /** Expects that the next occurrence is the next full hour, at which `save` may have been. */
  async function expectNextHour(save: () => Promise<{ id: string }>): Promise<string> {
    const before = Date.now();
    const { id } = await withClock(save);
    expect(await nextOf(id)).toBeGreaterThan(before);
    expect(await nextOf(id)).toBeLessThanOrEqual(Date.now() + HOUR_MS);
    return id;
  }

  test('is due at its next occurrence, also after a change and a pause', async () => {
    const id = await expectNextHour(create);
    const update = { cronExpression: '0 */1 * * *' };
    const root = admin(app);
    await expectNextHour(() => root.put<ScheduleRecord>(`${schedules}/${id}`, update).expect(200));
    for (const verb of ['pause', 'resume'])
      await expectNextHour(() =>
        root.post<ScheduleRecord>(`${schedules}/${id}/${verb}`).expect(200),
      );
    await withClock(() => root.delete(`${schedules}/${id}`).expect(204));
    // Nothing was due until then.
    expect(await app.deps.db('schedule_runs').where({ schedule_id: id })).toEqual([]);
  });

  test('has a backfill up to now, and none of what is to come', async () => {
    const { id } = await create({ cronExpression: '* * * * *' });
    const backfill = (untilMs: number) =>
      withClock(() =>
        admin(app).post(`${schedules}/${id}/backfill/preview`, {
          since: new Date(untilMs - 10 * 60_000).toISOString(),
          until: new Date(untilMs).toISOString(),
        }),
      );
    const now = Date.now();
    expect((await backfill(now - 60_000)).status).toBe(200);
    expect((await backfill(now + HOUR_MS)).body).toMatchObject({
      code: 'invalid_request',
      errors: [{ pointer: '/until', code: 'future' }],
    });
  });
});

test.each([-HOUR_MS, HOUR_MS])(
  'a hold has the status that it has for PostgreSQL, with a clock that is %d ms ahead',
  async (ms) => {
    const hold = async (times: object) => {
      const request = { reason: 'Case 1', ...times };
      const client = admin(app);
      const { id } = await client.post<{ id: string }>('/api/legal-holds', request).expect(201);
      return id;
    };
    const inMinutes = (minutes: number) => new Date(Date.now() + minutes * 60_000).toISOString();
    const planned = await hold({ startsAt: inMinutes(30) });
    const ending = await hold({ endsAt: inMinutes(30) });
    const started = await withClockAhead(ms, () => hold({}));
    const statuses = await withClockAhead(ms, async () => {
      const read = (path: string) =>
        admin(app).get<{ items: { id: string }[]; status: string }>(`/api/legal-holds${path}`);
      const one = async (id: string) => (await read(`/${id}`).expect(200)).status;
      const inForce = (await read('?status=in_force').expect(200)).items.map(({ id }) => id);
      return { each: await Promise.all([planned, ending, started].map(one)), inForce };
    });
    expect(statuses.each).toEqual(['planned', 'in_force', 'in_force']);
    expect(statuses.inForce).toEqual(expect.arrayContaining([ending, started]));
  },
);

test('the lease of an Idempotency-Key is by the clock of PostgreSQL', async () => {
  const { db } = app.deps;
  const key = { 'idempotency-key': 'leased' };
  const send = () =>
    admin(app).post('/api/jobs', { type: 'core.echo', payload: {} }, key).expect(201);
  await withClockAhead(-HOUR_MS, send);
  const [row] = await db('idempotency_keys').where({ key: 'leased' });
  expect(row.lease_until.getTime()).toBeGreaterThan(Date.now());
  expect(row.created_at.getTime()).toBeGreaterThan(Date.now() - 60_000);
});
