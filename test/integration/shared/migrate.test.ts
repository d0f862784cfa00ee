import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { openDatabase, type Knex } from '../../../db/core/knex.ts';
import { migrateDown, migrateUp, pendingMigrations } from '../../../db/core/migrate.ts';
import { MIGRATIONS } from '../../../db/migrations/index.ts';
import { createLog } from '../../../platform/log.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
let pools: Knex[];
beforeAll(async () => {
  database = await createDatabase({ empty: true });
  const open = () =>
    openDatabase({
      url: database.url,
      poolSize: 3,
      statementTimeoutMs: 0,
      log: createLog('silent', false),
    });
  pools = [open(), open(), open()];
});
afterAll(async () => {
  await Promise.all(pools.map((pool) => pool.destroy()));
  await database.drop();
});

const first = () => pools[0] as Knex;
const tables = async () =>
  (
    await first().raw(
      `SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename NOT LIKE 'schema_migrations%'`,
    )
  ).rows.length;

test('concurrent processes run each migration once', async () => {
  expect(await pendingMigrations(first())).toEqual(Object.keys(MIGRATIONS));
  const ran = await Promise.all(pools.map((pool) => migrateUp(pool)));
  expect(ran.flat()).toEqual(Object.keys(MIGRATIONS));
  expect(await pendingMigrations(first())).toEqual([]);
});

test('every migration can be reverted, one by one, and run again', async () => {
  const before = await tables();
  for (const name of Object.keys(MIGRATIONS).toReversed())
    expect(await migrateDown(first())).toEqual([name]);
  expect(await tables()).toBe(0);
  await migrateUp(first());
  expect(await tables()).toBe(before);
  await migrateDown(first(), true);
  expect(await tables()).toBe(0);
});
