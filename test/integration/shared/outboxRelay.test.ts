import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { Knex } from '../../../db/core/knex.ts';
import { claimOutbox, countDueOutbox } from '../../../db/core/outbox.ts';
import { createDispatcher } from '../../../temporal/dispatcher.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { withClockAhead } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';

let app: TestApp;
let db: Knex;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
  db = app.deps.db;
});
afterAll(() => app.stop());
beforeEach(() => db('outbox').delete());

/** Inserts tasks that have been due for seconds. */
async function addTasks(name: string, count: number, secondsAgo: number, tenantId = 'platform') {
  const due = new Date(Date.now() - secondsAgo * 1_000);
  const rows = Array.from({ length: count }, (_, n) => {
    const workflowId = `job:${name}${n}`;
    return {
      id: `out_${name}${String(n).padStart(4, '0')}`,
      workflow_id: workflowId,
      task: JSON.stringify({ kind: 'cancel', tenantId, workflowId }),
      available_at: due,
      created_at: due,
    };
  });
  await db.batchInsert('outbox', rows, 1_000);
}

/** A dispatcher that sends its calls to `call`, and what it has done. */
function startRelay(call: () => Promise<void>) {
  const seen = { calls: 0, checks: 0, inFlight: 0, most: 0, counts: 0 };
  const note = ({ sql }: { sql: string }) => {
    if (sql.includes('outbox') && sql.includes('count(')) seen.counts += 1;
  };
  db.on('query', note);
  const dispatcher = createDispatcher({
    ...app.deps,
    taskQueue: 'none',
    heartbeatMs: 1_000,
    eager: () => false,
    attempts: { accepts: () => false, make: () => Promise.resolve() },
    temporal: {
      ...app.deps.temporal,
      async call<T>(): Promise<T> {
        seen.calls += 1;
        seen.inFlight += 1;
        seen.most = Math.max(seen.most, seen.inFlight);
        await call().finally(() => (seen.inFlight -= 1));
        return undefined as T;
      },
      check(): Promise<void> {
        seen.checks += 1;
        return Promise.resolve();
      },
    },
  });
  dispatcher.start();
  return {
    seen,
    async stop() {
      await dispatcher.stop();
      db.off('query', note);
    },
  };
}

test('a backlog is sent in few rounds, a few calls at a time, and is not counted in each', async () => {
  await addTasks('many', 250, 60);
  const { seen, stop } = startRelay(() => new Promise((resolve) => setImmediate(resolve)));
  await eventually(
    () => db('outbox').first('id'),
    (task) => task === undefined,
  );
  await stop();
  expect(seen).toMatchObject({ calls: 250, most: 10 });
  expect(seen.checks).toBeLessThan(10);
  expect(seen.counts).toBeLessThan(10);
});

test('tasks that were not tried when Temporal is away are due as before', async () => {
  await addTasks('away', 100, 60);
  const { seen, stop } = startRelay(() => Promise.reject(new Error('away')));
  const untried = () => db('outbox').where({ attempts: 0 }).where('available_at', '<', new Date());
  await eventually(
    () => db('outbox').whereNotNull('last_error'),
    (failed) => failed.length > 0,
  );
  await stop();
  const tried = await db('outbox').where('attempts', '>', 0);
  expect(tried.length).toBeLessThanOrEqual(seen.calls);
  expect((await untried()).length).toBe(100 - tried.length);
});

test('claimed tasks are in the order of turns of the tenants', async () => {
  await addTasks('busy', 50, 60, 'busy');
  await addTasks('quiet', 1, 30, 'quiet');
  const claimed = await claimOutbox(db, { leaseMs: 60_000, limit: 100 });
  expect(claimed).toHaveLength(51);
  expect(claimed.slice(0, 2).map(({ id }) => id)).toContain('out_quiet0000');
});

test('no more than 10,000 due tasks are counted', async () => {
  await addTasks('counted', 10_005, 60);
  expect(await countDueOutbox(db)).toBe(10_000);
});

describe('whatever the clocks of the processes say', () => {
  const HOUR_MS = 3_600_000;
  const secondsLeft = async () => {
    const { rows } = await db.raw<{ rows: { left: number }[] }>(
      'SELECT extract(epoch FROM available_at - clock_timestamp())::float8 AS left FROM outbox',
    );
    return rows[0]?.left;
  };

  test('a task is due when it is written', async () => {
    const task = { kind: 'cancel', tenantId: 'platform', workflowId: 'job:ahead' } as const;
    await withClockAhead(HOUR_MS, () =>
      app.deps.dispatchUnaudited(() => Promise.resolve([task, { ...task, workflowId: 'job:too' }])),
    );
    expect(await secondsLeft()).toBeLessThan(60);
  });

  test('a task that is due is sent', async () => {
    await addTasks('behind', 1, 60);
    await withClockAhead(-HOUR_MS, async () => {
      const { stop } = startRelay(() => Promise.resolve());
      await eventually(
        () => db('outbox').first('id'),
        (task) => task === undefined,
      );
      await stop();
    });
  });

  test('a task that has failed waits as long as it has to', async () => {
    await addTasks('failing', 1, 60);
    await withClockAhead(HOUR_MS, async () => {
      const { stop } = startRelay(() => Promise.reject(new Error('away')));
      await eventually(
        () => db('outbox').whereNotNull('last_error'),
        (failed) => failed.length > 0,
      );
      await stop();
    });
    expect(await secondsLeft()).toBeLessThan(60);
  });
});
