import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { openDatabase, type Knex } from '../../../db/core/knex.ts';
import { migrateDown, migrateUp, pendingMigrations } from '../../../db/core/migrate.ts';
import { MIGRATIONS } from '../../../db/migrations/index.ts';
import { createLog } from '../../../platform/log.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
let pools: Knex[];
let tablesOfAll = 0;
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

test('a new database must have the encoding UTF8', async () => {
  const other = await createDatabase({ empty: true, encoding: 'SQL_ASCII' });
  const db = openDatabase({
    url: other.url,
    poolSize: 3,
    statementTimeoutMs: 0,
    log: createLog('silent', false),
  });
  try {
    await expect(migrateUp(db)).rejects.toThrow('has the encoding SQL_ASCII; Holdfast needs UTF8');
    expect(await pendingMigrations(db)).toEqual(Object.keys(MIGRATIONS));
  } finally {
    await db.destroy();
    await other.drop();
  }
});

test('every migration can be reverted, one by one', async () => {
  const before = await tables();
  for (const name of Object.keys(MIGRATIONS).toReversed())
    expect(await migrateDown(first())).toEqual([name]);
  expect(await tables()).toBe(0);
  tablesOfAll = before;
});

/** The migrations up to a position. */
const firstMigrations = (count: number) => ({
  migrations: Object.fromEntries(Object.entries(MIGRATIONS).slice(0, count)),
});

/** Runs the migrations that come before this one. */
async function migrateBefore(name: string): Promise<Knex> {
  const db = first();
  await migrateUp(db, firstMigrations(Object.keys(MIGRATIONS).indexOf(name)));
  return db;
}

/** Runs the next migration. */
async function migrateOne(db: Knex): Promise<void> {
  const next = (await pendingMigrations(db))[0] ?? '';
  await migrateUp(db, firstMigrations(Object.keys(MIGRATIONS).indexOf(next) + 1));
}

test('of schedules with the same name, the oldest keeps it', async () => {
  const db = await migrateBefore('0009_schedule_names');
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
  await migrateOne(db);
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
  const db = await migrateBefore('0012_shared_records');
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
  await migrateOne(db);
  expect(await db('vrfs').orderBy('id').select('id', 'shared_with')).toEqual([
    { id: 'vrf_1', shared_with: ['blue', 'red'] },
    { id: 'vrf_2', shared_with: [] },
    { id: 'vrf_3', shared_with: [] },
  ]);
  await db('prefixes').del();
  await db('vrfs').del();
});

test('prefixes have one tree for each tenant, and again one for all when that is reverted', async () => {
  const db = await migrateBefore('0013_spaces');
  await migrateOne(db);
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
  await migrateDown(db);
  expect(await parents()).toEqual({
    pfx_1: null,
    pfx_2: 'pfx_1',
    pfx_3: 'pfx_2',
    pfx_4: 'pfx_3',
    pfx_5: 'pfx_4',
    pfx_6: 'pfx_1',
  });
  await migrateOne(db);
  expect(await parents()).toEqual(before);
  await db('prefixes').del();
});

test('grants at devices and requests lose sites of other tenants', async () => {
  const db = await migrateBefore('0018_own_scopes');
  await seedForeignSites(db);
  await migrateOne(db);
  expect(await db('grants').orderBy('id').select('id', 'site_id')).toEqual([
    { id: 'g_dev_blue', site_id: null },
    { id: 'g_dev_red', site_id: 'sit_red' },
    { id: 'g_sit_red', site_id: 'sit_red' },
  ]);
  expect(
    await db('approvals').orderBy('id').select('site_id', 'scope_site_id', 'scope_device_id'),
  ).toEqual([
    { site_id: 'sit_red', scope_site_id: null, scope_device_id: 'dev_blue' },
    { site_id: 'sit_red', scope_site_id: 'sit_red', scope_device_id: 'dev_red' },
    { site_id: 'sit_red', scope_site_id: null, scope_device_id: null },
  ]);
  for (const table of ['grants', 'approvals', 'devices', 'sites', 'users']) await db(table).del();
});

/** A site of red with a device of red and one of blue, grants there, and requests. */
async function seedForeignSites(db: Knex) {
  await db('sites').insert({ id: 'sit_red', tenant_id: 'red', name: 's' });
  for (const tenant of ['red', 'blue'])
    await db('devices').insert({
      id: `dev_${tenant}`,
      tenant_id: tenant,
      site_id: 'sit_red',
      name: tenant,
    });
  const at = { created_at: new Date(), updated_at: new Date() };
  await db('users').insert({
    id: 'usr_1',
    provider_id: 'local',
    username: 'u',
    display_name: 'u',
    tenant_id: 'red',
    enabled: true,
    ...at,
  });
  for (const [tenant, device] of [
    ['red', null],
    ['red', 'dev_red'],
    ['blue', 'dev_blue'],
  ] as const)
    await db('grants').insert({
      id: `g_${device ?? 'sit_red'}`,
      kind: 'assignment',
      user_id: 'usr_1',
      role_id: 'viewer',
      level: device === null ? 'site' : 'device',
      tenant_id: tenant,
      site_id: 'sit_red',
      device_id: device,
      created_by: 'ann',
      created_at: new Date(),
    });
  for (const [id, tenant, device] of [
    ['apr_1', 'blue', 'dev_blue'],
    ['apr_2', 'red', 'dev_red'],
    ['apr_3', 'blue', 'dev_red'],
  ] as const)
    await db('approvals').insert({
      id,
      tenant_id: tenant,
      site_id: 'sit_red',
      device_id: device,
      type: 'change',
      title: 't',
      payload: '{}',
      status: 'pending',
      execution: 'none',
      required_approvals: 1,
      content_key: 'k',
      content_hash: 'h',
      expires_at: new Date(),
      created_by: 'ann',
      requester_names: '[]',
      authority: '{}',
      check_at: new Date(),
      ...at,
    });
}

test('names of tenants at one site stay apart, until that is reverted', async () => {
  const db = await migrateBefore('0019_names_of_tenants');
  await migrateOne(db);
  await db('sites').insert({ id: 'sit_1', tenant_id: 'red', name: 's' });
  const insert = (id: string, tenant: string) =>
    db('racks').insert({
      id,
      tenant_id: tenant,
      site_id: 'sit_1',
      name: 'r1',
      status: 'active',
      u_height: 42,
    });
  await insert('rck_1', 'red');
  await insert('rck_2', 'blue');
  await expect(insert('rck_3', 'blue')).rejects.toThrow('racks_name_of_tenant');
  await migrateDown(db);
  expect(await db('racks').orderBy('id').pluck('name')).toEqual(['r1', 'r1 (rck_2)']);
  await expect(insert('rck_3', 'green')).rejects.toThrow('racks_site_id_name_key');
  await migrateOne(db);
  await insert('rck_3', 'green');
  for (const table of ['racks', 'sites']) await db(table).del();
});

test('of many schedules of a tenant, later ones are spread', async () => {
  const db = await migrateBefore('0020_spread_schedules');
  await db.raw(
    `INSERT INTO schedules (id, tenant_id, name, description, cron_expression, timezone, job_type,
       payload, retry_policy, overlap_policy, catchup_window_seconds, jitter_seconds, enabled,
       owner, checked_at, created_by, created_at, updated_at)
     SELECT 'sch_' || tenant || lpad(n::text, 2, '0'), tenant, n::text, '', '@daily', 'UTC',
       'core.echo', '{}', '{}', 'skip', 60, 0, true, '{}', now(), 'ann', now(), now()
     FROM unnest(ARRAY['many', 'platform']) AS tenant, generate_series(1, 70) AS n`,
  );
  await migrateOne(db);
  const rows = await db('schedules')
    .whereIn('id', ['sch_many10', 'sch_many11', 'sch_many70', 'sch_platform70'])
    .orderBy('id')
    .pluck('spread_seconds');
  expect(rows).toEqual([0, 1, 50, 0]);
});

test('a pool with the name of the workers stops the migration, which says what to do', async () => {
  const db = await migrateBefore('0064_modules_pool');
  const now = new Date();
  const pool = {
    description: '',
    created_by: 'root',
    created_at: now,
    updated_at: now,
    version: 1,
  };
  await db('pools').insert({ name: 'modules', accept_types: [], ...pool });
  await expect(migrateUp(db)).rejects.toThrow('delete its job types and then the pool');
  expect(await pendingMigrations(db)).toContain('0064_modules_pool');
  await db('pools').delete();
  await migrateOne(db);
  await expect(db('pools').insert({ name: 'modules', accept_types: [], ...pool })).rejects.toThrow(
    'pools_reserved_name',
  );
});

test('views of deleted tenants are deleted, and the periods that a tenant has inherited stay', async () => {
  const db = await migrateBefore('0119_former_tenants');
  const at = (day: number) => new Date(Date.UTC(2026, 0, day));
  const view = (id: string, tenant: string, created: Date) =>
    db('views').insert({
      ...{ id, tenant_id: tenant, list: '/jobs', name: id, search: '{}', shared: true },
      ...{ owner: 'o', created_by: 'o', created_at: created, updated_at: created, version: 1 },
    });
  await view('viw_1', 'again', at(1));
  await view('viw_2', 'again', at(3));
  await view('viw_3', 'deleted', at(1));
  await view('viw_4', 'named', at(1));
  await view('viw_5', 'undone', at(1));
  await view('viw_6', 'back', at(1));
  for (const [id, tenant] of [
    ['viw_3', 'deleted'],
    ['viw_4', 'named'],
  ] as const)
    await db('view_defaults').insert({
      ...{ tenant_id: tenant, owner: 'o', list: '/jobs', view_id: id },
    });
  for (const [id, action] of [
    ['again', 'delete'],
    ['deleted', 'delete'],
    ['back', 'delete'],
    ['undone', 'restore'],
  ] as const)
    await db('audit_entries').insert({
      ...{ id: `aud_${id}`, tenant_id: id, actor_id: 'root', via: 'gateway' },
      ...{ action: `inventory.tenant.${action}`, outcome: 'done', request_id: 'r', at: at(2) },
      ...{ subject_type: 'tenant', subject_id: id },
    });
  await db('tenants').insert({ id: 'again', name: 'again', created_at: at(3) });
  // A restore has brought it back.
  await db('tenants').insert({ id: 'back', name: 'back', created_at: at(1) });
  await db('retention_settings').insert({
    ...{ tenant_id: 'again', days: '{"events":7}', job_types: '{}', version: 1 },
    ...{ created_at: at(1), updated_at: at(1) },
  });
  await migrateOne(db);
  expect(await db('views').orderBy('id').pluck('id')).toEqual(['viw_2', 'viw_4', 'viw_6']);
  expect(await db('view_defaults').pluck('view_id')).toEqual(['viw_4']);
  expect(await db('retention_settings').select('days', 'updated_at')).toEqual([
    { days: { events: 7 }, updated_at: at(3) },
  ]);
  for (const table of ['views', 'view_defaults', 'retention_settings']) await db(table).del();
  await db('tenants').whereIn('id', ['again', 'back']).del();
});

test('reverted migrations run again, and all can be reverted together', async () => {
  await migrateUp(first());
  expect(await tables()).toBe(tablesOfAll);
  await migrateDown(first(), true);
  expect(await tables()).toBe(0);
});
