import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { startCrashingWorkers } from '../../support/crashingWorkers.ts';
import { killRounds } from '../../support/effort.ts';
import { killAll } from '../../support/processes.ts';
import {
  createMinutelySchedule,
  minutesFromNow,
  backdateSchedule,
} from '../../support/schedules.ts';

const SCHEDULES = 16;
const MINUTES = 5;
const KILLS = killRounds();

let app: TestApp;
beforeAll(async () => {
  app = await startApp(
    { HOLDFAST_CATCH_UP_SECONDS: '1', HOLDFAST_RECONCILE_SECONDS: '2' },
    { idle: true },
  );
});
afterAll(async () => {
  await killAll();
  await app.stop();
});

const query = async <T>(sql: string, bindings: readonly Date[] = []): Promise<T[]> =>
  (await app.deps.db.raw<{ rows: T[] }>(sql, bindings)).rows;

test('an occurrence has one run and at most one job although workers crash', async () => {
  const { db } = app.deps;
  const client = app.client.as({ tenant: 'kill' });
  const policies = ['skip', 'bufferOne', 'allowAll', 'cancelOther'];
  const minute = minutesFromNow();
  const until = minute(0);
  for (let n = 0; n < SCHEDULES; n++) {
    const { id } = await createMinutelySchedule(client, {
      overlapPolicy: policies[n % policies.length],
      catchupWindowSeconds: 3_600,
    });
    await backdateSchedule(app, id, minute(-MINUTES));
  }
  const workers = await startCrashingWorkers(app);
  await workers.crash(KILLS, 2_000);
  await eventually(
    () => query('SELECT id FROM schedules WHERE next_due_at <= ?', [until]),
    (pending) => pending.length === 0,
    { withinMs: 60_000 },
  );
  await eventually(
    () => db('schedule_runs').where({ outcome: 'buffered' }),
    (buffered) => buffered.length === 0,
    { withinMs: 30_000 },
  );
  await eventually(
    () => db('jobs').whereIn('status', ['queued', 'running']),
    (unfinished) => unfinished.length === 0,
    { withinMs: 60_000 },
  );

  const counts = await query<{ count: number }>(
    'SELECT count(*)::int FROM schedule_runs WHERE due_at <= ? GROUP BY schedule_id',
    [until],
  );
  expect(counts).toEqual(Array.from({ length: SCHEDULES }, () => ({ count: MINUTES + 1 })));
  const [runs] = await query<{ withJob: number; fired: number }>(
    `SELECT count(DISTINCT job_id)::int AS "withJob",
            count(*) FILTER (WHERE outcome = 'fired')::int AS fired
     FROM schedule_runs`,
  );
  const [jobs] = await query<{ count: number }>(
    `SELECT count(*)::int FROM jobs WHERE source_kind = 'schedule'`,
  );
  const [events] = await query<{ count: number }>(
    `SELECT count(*)::int FROM events WHERE type = 'schedule.fired'`,
  );
  const fired = runs?.fired ?? 0;
  expect(fired).toBeGreaterThan(SCHEDULES);
  expect({ runs, jobs, events }).toEqual({
    runs: { withJob: fired, fired },
    jobs: { count: fired },
    events: { count: fired },
  });
}, 240_000);
