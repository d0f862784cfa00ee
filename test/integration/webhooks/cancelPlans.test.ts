import { afterAll, beforeAll, expect, test } from '@jest/globals';
import {
  findCancellableDeliveries,
  finishCancellation,
  markDeliveriesCancelled,
} from '../../../db/webhooks/deliveryQueue.ts';
import type { Knex } from '../../../db/core/knex.ts';
import { startAppOn, type TestApp } from '../../support/app.ts';
import { createDatabase } from '../../support/database.ts';

/**
 * Right after a replay, PostgreSQL does not know how many deliveries are pending. A batch of a cancellation must not
 * read all of them for each of its own.
 */
let database: Awaited<ReturnType<typeof createDatabase>>;
let app: TestApp;
const WEBHOOKS = 10;
const EVENTS = 300;
const BATCH = 100;

beforeAll(async () => {
  database = await createDatabase();
  app = await startAppOn(database.url, {}, { idle: true });
  await app.deps.db.raw(`
    ALTER TABLE deliveries SET (autovacuum_enabled = false);
    INSERT INTO webhooks (id, tenant_id, endpoint_url, event_types, enabled, secret, enabled_at, disabled_at,
                          disabled_reason, cancel_before, cancel_reason, created_by, created_at, updated_at, description, retry_policy)
      SELECT 'whk_' || w, 'noisy', 'http://x', '{a}', false, 's', now(), now(), 'request', now(), 'x', 'x', now(), now(), '', '{}'
      FROM generate_series(0, ${WEBHOOKS - 1}) AS w;
    INSERT INTO events (id, type, tenant_id, subject_type, subject_id, actor_id, data, created_at)
      SELECT 'evt_' || e, 'a', 'noisy', 'x', 'x', 'x', '{}', now() FROM generate_series(1, ${EVENTS}) AS e;
    INSERT INTO deliveries (id, tenant_id, webhook_id, event_id, status, queued_at, created_at, updated_at)
      SELECT 'dlv_' || e || '_' || w, 'noisy', 'whk_' || w, 'evt_' || e, 'pending', now(), now(), now()
      FROM generate_series(1, ${EVENTS}) AS e, generate_series(0, ${WEBHOOKS - 1}) AS w`);
});
afterAll(async () => {
  await app.stop();
  await database.drop();
});

type PlanNode = {
  'Actual Rows': number;
  'Actual Loops': number;
  Plans?: PlanNode[];
} & Partial<Record<`Rows Removed by ${'Filter' | 'Join Filter'}`, number>>;

/** How many rows, and pairs of rows, a plan has read. */
const rowsRead = (node: PlanNode): number =>
  (node['Actual Rows'] +
    (node['Rows Removed by Filter'] ?? 0) +
    (node['Rows Removed by Join Filter'] ?? 0)) *
    node['Actual Loops'] +
  (node.Plans ?? []).reduce((sum, each) => sum + rowsRead(each), 0);

/** The statements that `act` sends about deliveries, each with the number of rows that it reads. */
async function readingsOf(act: (trx: Knex) => Promise<unknown>): Promise<number[]> {
  const { db } = app.deps;
  const sent: { sql: string; bindings: Knex.RawBinding[] }[] = [];
  const trx = await db.transaction();
  const note = (query: (typeof sent)[number]) => void sent.push(query);
  db.on('query', note);
  await act(trx).finally(() => db.off('query', note));
  await trx.rollback();
  const readings: number[] = [];
  for (const { sql, bindings } of sent.filter((each) => each.sql.includes('deliveries'))) {
    const explaining = await db.transaction();
    const { rows } = await explaining.raw<{ rows: { 'QUERY PLAN': { Plan: PlanNode }[] }[] }>(
      `EXPLAIN (ANALYZE, FORMAT JSON) ${sql.replaceAll(/\$\d+/g, '?')}`,
      bindings,
    );
    await explaining.rollback();
    readings.push(...rows.flatMap((row) => row['QUERY PLAN'].map(({ Plan }) => rowsRead(Plan))));
  }
  return readings;
}

test('a batch of a cancellation reads few rows more than it cancels', async () => {
  const batch = await findCancellableDeliveries(app.deps.db, 'whk_3', BATCH);
  expect(batch).toHaveLength(BATCH);
  const readings = await readingsOf(async (trx) => {
    await findCancellableDeliveries(trx, 'whk_3', BATCH);
    expect(await markDeliveriesCancelled(trx, batch, 'x', new Date())).toBe(BATCH);
    await finishCancellation(trx, 'whk_3');
  });
  expect(readings.length).toBeGreaterThanOrEqual(4);
  // Some plans read the whole table, which is small here, but only once.
  expect(Math.max(...readings)).toBeLessThan(2 * WEBHOOKS * EVENTS);
});
