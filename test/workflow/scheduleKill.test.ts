import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { startMortals } from '../support/crashingWorkers.ts';
import { killAll } from '../support/processes.ts';
import { everyMinute, minute, neglect } from '../support/schedules.ts';

const SCHEDULES = 24;
const MINUTES = 5;

let app: TestApp;
beforeAll(async () => {
  app = await startApp(
    { HOLDFAST_SWEEP_SECONDS: '1', HOLDFAST_RECONCILE_SECONDS: '2' },
    { idle: true },
  );
});
afterAll(async () => {
  await killAll();
  await app.stop();
});

const rows = async <T>(sql: string): Promise<T[]> => (await app.deps.db.raw(sql)).rows as T[];

test('every time due has one run and at most one job, with processes killed again and again', async () => {
  const { db } = app.deps;
  const client = app.client.as({ tenant: 'kill' });
  const policies = ['skip', 'bufferOne', 'allowAll', 'cancelOther'];
  const [from, until] = [minute(-MINUTES), minute()];
  for (let n = 0; n < SCHEDULES; n++) {
    const { id } = await everyMinute(client, {
      overlapPolicy: policies[n % policies.length],
      catchupWindowSeconds: 3_600,
    });
    await neglect(app, id, from);
  }
  const mortals = await startMortals(app, 2, 2_500);
  const accounted = () =>
    rows<{ id: string }>(`SELECT id FROM schedules WHERE next_due_at <= '${until.toISOString()}'`);
  await eventually(
    async () => (await accounted()).length,
    (left) => left === 0 && mortals.kills() >= 4,
    { withinMs: 100_000 },
  );
  await mortals.spare();
  await eventually(
    () => db('schedule_runs').where({ outcome: 'buffered' }),
    (waiting) => waiting.length === 0,
    { withinMs: 30_000 },
  );
  await eventually(
    () => db('jobs').whereIn('status', ['queued', 'running']),
    (unfinished) => unfinished.length === 0,
    { withinMs: 60_000 },
  );

  const counts = await rows<{ times: number }>(
    `SELECT count(*)::int AS times FROM schedule_runs WHERE due_at <= '${until.toISOString()}' GROUP BY schedule_id`,
  );
  expect(counts.map(({ times }) => times)).toEqual(
    Array.from({ length: SCHEDULES }, () => MINUTES + 1),
  );
  const [jobs] = await rows<{ made: number; named: number; fired: number }>(
    `SELECT (SELECT count(*)::int FROM jobs WHERE source_kind = 'schedule') AS made, count(DISTINCT job_id)::int AS named, count(*) FILTER (WHERE outcome = 'fired')::int AS fired FROM schedule_runs`,
  );
  expect(jobs).toEqual({ made: jobs?.fired, named: jobs?.fired, fired: jobs?.fired });
  expect(jobs?.fired).toBeGreaterThan(SCHEDULES);
  const [events] = await rows<{ count: number }>(
    `SELECT count(*)::int FROM events WHERE type = 'schedule.fired'`,
  );
  expect(events?.count).toBe(jobs?.fired);
}, 240_000);
