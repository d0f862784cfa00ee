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

test('of schedules with the same name, the oldest keeps it', async () => {
  const db = first();
  while (!(await pendingMigrations(db)).includes('0009_schedule_names')) await migrateDown(db);
  const insert = (id: string, tenant: string, name: string, deleted = false) =>
    db.raw(
      `INSERT INTO schedules (id, tenant_id, name, description, cron_expression, timezone, job_type,
         payload, retry_policy, overlap_policy, catchup_window_seconds, jitter_seconds, enabled,
         owner, checked_at, created_by, created_at, updated_at, deleted_at)
       VALUES (?, ?, ?, '', '@daily', 'UTC', 'core.echo', '{}', '{}', 'skip', 60, 0, true,
         '{}', now(), 'ann', now(), now(), CASE WHEN ? THEN now() END)`,
      [id, tenant, name, deleted],
    );
  const long = 'n'.repeat(255);
  await insert('sch_0', 'a', 'nightly', true);
  await insert('sch_1', 'a', 'nightly');
  await insert('sch_2', 'a', 'nightly');
  await insert('sch_3', 'b', 'nightly');
  await insert('sch_4', 'a', long);
  await insert('sch_5', 'a', long);
  await insert('sch_6', 'a', 'weekly');
  await migrateUp(db);
  const rows = await db('schedules').orderBy('id').select('name', 'version');
  expect(rows).toEqual([
    { name: 'nightly', version: 1 },
    { name: 'nightly', version: 1 },
    { name: 'nightly (sch_2)', version: 2 },
    { name: 'nightly', version: 1 },
    { name: long, version: 1 },
    { name: `${'n'.repeat(200)} (sch_5)`, version: 2 },
    { name: 'weekly', version: 1 },
  ]);
  await expect(insert('sch_7', 'a', 'weekly')).rejects.toThrow('schedules_name');
});

test('records of the platform are shared with the tenants that refer to them, others with nobody', async () => {
  const db = first();
  while (!(await pendingMigrations(db)).includes('0012_shared_records')) await migrateDown(db);
  for (const [id, tenant] of [
    ['vrf_1', 'platform'],
    ['vrf_2', 'platform'],
    ['vrf_3', 'blue'],
  ] as const)
    await db('vrfs').insert({ id, tenant_id: tenant, name: id, enforce_unique: true });
  for (const [i, [vrf, tenant]] of [
    ['vrf_1', 'red'],
    ['vrf_1', 'blue'],
    ['vrf_1', 'red'],
    ['vrf_1', 'platform'],
    ['vrf_3', 'red'],
  ].entries())
    await db('prefixes').insert({
      id: `pfx_${i}`,
      tenant_id: tenant,
      vrf_id: vrf,
      cidr: `10.${i}.0.0/16`,
      status: 'active',
      allocation_mode: 'static',
    });
  await migrateUp(db);
  expect(await db('vrfs').orderBy('id').select('id', 'shared_with')).toEqual([
    { id: 'vrf_1', shared_with: ['blue', 'red'] },
    { id: 'vrf_2', shared_with: [] },
    { id: 'vrf_3', shared_with: [] },
  ]);
  await db('prefixes').del();
  await db('vrfs').del();
});

test('prefixes have one tree for each tenant, and again one for all when that is reverted', async () => {
  const db = first();
  const parents = async () =>
    Object.fromEntries(
      (await db('prefixes').select('id', 'parent_prefix_id')).map(
        (row: { id: string; parent_prefix_id: string | null }) => [row.id, row.parent_prefix_id],
      ),
    );
  for (const [id, tenant, cidr, parent] of [
    ['pfx_1', 'red', '10.0.0.0/8', null],
    ['pfx_2', 'blue', '10.0.0.0/16', null],
    ['pfx_3', 'red', '10.0.0.0/24', 'pfx_1'],
    ['pfx_4', 'platform', '10.0.0.0/26', null],
    ['pfx_5', 'red', '10.0.0.0/27', 'pfx_4'],
    ['pfx_6', 'blue', '10.1.0.0/16', null],
  ] as const)
    await db('prefixes').insert({
      id,
      tenant_id: tenant,
      parent_prefix_id: parent,
      cidr,
      status: 'active',
      allocation_mode: 'static',
    });
  const before = await parents();
  while (!(await pendingMigrations(db)).includes('0013_spaces')) await migrateDown(db);
  expect(await parents()).toEqual({
    pfx_1: null,
    pfx_2: 'pfx_1',
    pfx_3: 'pfx_2',
    pfx_4: 'pfx_3',
    pfx_5: 'pfx_4',
    pfx_6: 'pfx_1',
  });
  await migrateUp(db);
  expect(await parents()).toEqual(before);
  await db('prefixes').del();
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
