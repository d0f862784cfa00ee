import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFile, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { COUNTED_ROWS } from '../../../db/backups/recountQuotas.ts';
import { StagingBusy } from '../../../db/backups/staging.ts';
import { lockKeySql } from '../../../db/core/advisoryLocks.ts';
import { findStateAt } from '../../../db/inventory/history.ts';
import { MIGRATIONS } from '../../../db/migrations/index.ts';
import { openDatabase, type Knex } from '../../../db/core/knex.ts';
import type { BackupList } from '../../../api/backups/schemas.ts';
import { RESOURCES } from '../../../domain/inventory/resources/index.ts';
import { readArchive } from '../../../platform/archive/index.ts';
import { createLog } from '../../../platform/log.ts';
import { createFolderStore } from '../../../platform/stores/folder.ts';
import { createVault } from '../../../platform/vault.ts';
import { unsealWith } from '../../../services/backups/archives.ts';
import { importArchive } from '../../../services/backups/importArchive.ts';
import { startApp, startAppOn, type TestApp } from '../../support/app.ts';
import { archiveRow } from '../../support/auditArchives.ts';
import {
  createArchiveFolder,
  backupCreator,
  dumpTables,
  HISTORY_TABLES,
  restorer,
  STATE_TABLES,
} from '../../support/backups.ts';
import { COMPILE_CACHE } from '../../support/compileCache.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { seedEstate } from '../../support/estate.ts';
import type { RecordPage } from '../../support/inventory.ts';
import { runArchiveCommand } from '../../support/processes.ts';
import { expectProblem } from '../../support/problem.ts';
import { acceptedType, createRunnerSecret, digestOf } from '../../support/runner.ts';
import { killBefore } from '../../support/stopPoints.ts';
import { admin, login } from '../../support/users.ts';

const run = promisify(execFile);
const ROOT = path.resolve(import.meta.dirname, '../../..');
const MASTER_KEY = '07'.repeat(32);
const unseal = unsealWith(createVault([{ id: 'test', key: Buffer.from(MASTER_KEY, 'hex') }]));
/**
 * An archive of the first release, made with the key of these tests, in base64. RECORD_ARCHIVE=true
 * writes it again, which is allowed only until the first release.
 */
const FIRST_ARCHIVE = path.join(ROOT, 'test/fixtures/archive-0008.base64');

let archives: Awaited<ReturnType<typeof createArchiveFolder>>;
let app: TestApp;
const databases: TestDatabase[] = [];
const pools: Knex[] = [];
beforeAll(async () => {
  archives = await createArchiveFolder();
  app = await startApp(archives.env);
  await seedEstate(app);
  if (process.env.RECORD_ARCHIVE === 'true') await recordArchive();
}, 60_000);
afterAll(async () => {
  await Promise.all(pools.map((pool) => pool.destroy()));
  await app.stop();
  await Promise.all(databases.map((database) => database.drop()));
  await archives.remove();
});

async function recordArchive(): Promise<void> {
  const { id, archive } = await createBackup();
  const text = (await readFile(path.join(archives.folder, archive))).toString('base64');
  await writeFile(FIRST_ARCHIVE, text.replace(/.{100}/g, '$&\n'));
  await admin(app).delete(`/api/backup/${id}`).expect(204);
}

/** A database with the current schema and no records. */
async function emptyDatabase() {
  const database = await createDatabase();
  const db = openDatabase({
    url: database.url,
    poolSize: 3,
    statementTimeoutMs: 0,
    log: createLog('silent', false),
  });
  databases.push(database);
  pools.push(db);
  return { url: database.url, db };
}

const readArchiveOf = ({ archive }: { archive: string }) =>
  readArchive(createFolderStore(archives.folder).read(archive), unseal);
const createBackup = backupCreator(() => admin(app));

/** All tables, without the job of the backup itself, which continues after the snapshot. */
const dumpStable = async (url: string) => {
  const all = await dumpTables(url, [...STATE_TABLES, ...HISTORY_TABLES]);
  return { ...all, jobs: all.jobs?.filter((line) => !line.includes('backup.')), job_logs: [] };
};

test('a restore is complete although the store cannot be used, and archives are registered later', async () => {
  const backup = await createBackup({ sections: ['settings'], mode: 'partial' });
  const { url, db } = await emptyDatabase();
  const command = (env: Record<string, string>, ...args: string[]) =>
    runArchiveCommand(
      {
        DATABASE_URL: url,
        HOLDFAST_MASTER_KEYS: `test:${Buffer.alloc(32, 7).toString('base64')}`,
        HOLDFAST_LOG_LEVEL: 'silent',
        ...env,
      },
      ...args,
    );
  const unavailable = {
    HOLDFAST_BACKUP_S3_BUCKET: 'lost',
    HOLDFAST_BACKUP_S3_ENDPOINT: 'http://127.0.0.1:1',
    HOLDFAST_BACKUP_S3_ACCESS_KEY_ID: 'none',
    HOLDFAST_BACKUP_S3_SECRET_ACCESS_KEY: 'none',
  };
  const restored = await command(
    unavailable,
    'restore',
    path.join(archives.folder, backup.archive),
  );
  expect(restored.stderr).toMatch(/^Warning: the restore is complete, but .* not registered/);
  expect(restored.status).toBe(0);
  expect(restored.stdout).toMatch(/Restored \d+ rows of /);
  expect(await db('backups').pluck('id')).toEqual([]);
  const registered = await command(archives.env, 'register');
  expect([registered.status, registered.stderr]).toEqual([0, '']);
  expect(await db('backups').pluck('id')).toContain(backup.id);
  // Reading this file fails with EIO.
  const unread = path.join(archives.folder, 'bkp_unread.hfb');
  await symlink('/proc/self/mem', unread);
  const partly = await command(archives.env, 'register');
  await rm(unread);
  expect([partly.status, partly.stderr]).toEqual([
    1,
    expect.stringContaining(`1 archive could not be read:\n${path.basename(unread)}: `),
  ]);
  await admin(app).delete(`/api/backup/${backup.id}`).expect(204);
});

describe('disaster recovery', () => {
  test('restores every row into an empty database and registers the archives', async () => {
    await app.deps.auditSealer.seal();
    const { type } = await acceptedType(app, 'ams');
    const runnerToken = await createRunnerSecret(app, 'ams');
    const backup = await createBackup({ label: 'last' });
    const before = await dumpStable(app.databaseUrl);
    const { url, db } = await emptyDatabase();
    const env = {
      ...process.env,
      DATABASE_URL: url,
      HOLDFAST_MASTER_KEYS: `test:${Buffer.alloc(32, 7).toString('base64')}`,
      ...archives.env,
    };
    const command = (...args: string[]) =>
      run(process.execPath, ['processes/cli/archive.ts', ...args], {
        cwd: ROOT,
        env: { ...env, HOLDFAST_LOG_LEVEL: 'silent' },
      });
    expect((await command('list')).stdout).toContain(backup.archive);
    expect((await command('show', backup.archive)).stdout).toContain('the archive is complete');
    const rows = await command('rows', backup.archive, 'sites');
    expect([rows.stdout.split('\n').length, rows.stderr]).toEqual([
      2,
      expect.stringContaining('description'),
    ]);
    expect((await command('restore', backup.archive)).stdout).toMatch(/Restored \d+ rows of /);
    const after = await dumpStable(url);
    // Rows that were written after the snapshot are missing.
    for (const name of [
      ...STATE_TABLES,
      'deliveries',
      'approvals',
      'approval_assignees',
      'schedule_runs',
      'imports',
      'jobs',
    ])
      expect([name, after[name as 'jobs']]).toEqual([name, before[name as 'jobs']]);
    const entries = await db('audit_entries')
      .whereNotIn('action', ['backup.register', 'backup.restore'])
      .pluck('id');
    expect(entries.length).toBeGreaterThan(50);
    expect(await app.deps.db('audit_entries').whereIn('id', entries).pluck('id')).toHaveLength(
      entries.length,
    );
    expect(await db('cable_ends').orderBy('interface_id')).toEqual(
      await app.deps.db('cable_ends').orderBy('interface_id'),
    );
    await expect(importArchive({ db, databaseUrl: url }, readArchiveOf(backup))).rejects.toThrow(
      'The database is not empty',
    );
    // The new installation works: users log in, records are read and written, backups are listed.
    const restoredApp = await startAppOn(url, {
      ...archives.env,
      // The master key was replaced since: the former one still opens what the archive has.
      HOLDFAST_MASTER_KEYS: `next:${Buffer.alloc(32, 9).toString('base64')},${env.HOLDFAST_MASTER_KEYS}`,
    });
    try {
      expect((await login(restoredApp, 'platform-ann')).status).toBe(200);
      expect(await admin(restoredApp).get(`/api/job-types/${type}`).expect(200)).toMatchObject({
        state: 'accepted',
        digest: digestOf(type),
      });
      const runnerAgain = restoredApp.client.as({ token: runnerToken });
      await expectProblem(
        runnerAgain.post('/api/runner/alive', { runnerId: randomUUID(), pool: 'ams' }),
        404,
        'unknown_runner',
      );
      const secret = await db('secrets').first('id', 'sealed');
      expect(restoredApp.deps.vault.open(secret.sealed, `secret:${secret.id}:value`)).toBe(
        'of the estate',
      );
      const devices = await admin(restoredApp)
        .get<RecordPage>('/api/inventory/devices')
        .expect(200);
      expect(devices.items).toHaveLength(3);
      for (const device of devices.items) {
        const then = `/api/inventory/devices/${device.id}?at=${new Date().toISOString()}`;
        expect(await admin(restoredApp).get(then).expect(200)).toEqual(device);
      }
      expect(
        (await admin(restoredApp).post('/api/inventory/sites', { name: 'after' })).status,
      ).toBe(201);
      const { backups } = await admin(restoredApp).get<BackupList>('/api/backup').expect(200);
      expect(backups).toEqual([
        expect.objectContaining({
          id: backup.id,
          status: 'completed',
          label: 'imported from store',
        }),
      ]);
      const { outcome } = await restorer(() => admin(restoredApp))({ backupId: backup.id });
      expect(outcome.deleted).toBe(1);
      await restoredApp.deps.auditSealer.seal();
      expect(await restoredApp.deps.auditSealer.verify('platform')).toMatchObject({ broken: null });
    } finally {
      await restoredApp.stop();
    }
  }, 120_000);

  test('without the audit log, records are known from their last change on', async () => {
    const backup = await createBackup({ mode: 'partial', sections: ['inventory'] });
    const { url, db } = await emptyDatabase();
    await importArchive({ db, databaseUrl: url }, readArchiveOf(backup));
    const { id, created_at, updated_at } = await db('devices').where('version', '>', 1).first();
    const stateAt = (time: Date) => findStateAt(db, RESOURCES.devices, id, time);
    const justBefore = (time: Date) => new Date(time.getTime() - 1);
    expect(await stateAt(updated_at)).toMatchObject({ id, name: 'd1', version: 2 });
    expect(await stateAt(justBefore(updated_at))).toBeUndefined();
    expect(await stateAt(justBefore(created_at))).toBeNull();
  });

  test('leaves the database empty when the archive is damaged', async () => {
    const { url, db } = await emptyDatabase();
    const backup = await createBackup({ label: 'damaged' });
    const bytes = await readFile(path.join(archives.folder, backup.archive));
    bytes[bytes.length - 100] = (bytes[bytes.length - 100] ?? 0) ^ 1;
    const before = await describeSchema(db);
    await expect(
      importArchive(
        { db, databaseUrl: url },
        readArchive(Readable.from([bytes]), unseal),
        ALL_TABLES_ARE_LARGE,
      ),
    ).rejects.toMatchObject({ code: 'archive_damaged' });
    expect(await db('devices').count({ n: '*' })).toEqual([{ n: 0 }]);
    expect(await describeSchema(db)).toEqual(before);
  });

  test('replaces large tables by new ones with the same rows and the same definition', async () => {
    const proven = archiveRow(app, 'proven');
    const writing = { status: 'writing', checkpoint_at: null, size_bytes: null };
    await app.deps.db('audit_archives').insert(proven);
    await app.deps.db('audit_archives').insert(archiveRow(app, 'unproven', writing));
    const backup = await createBackup({ label: 'large' });
    const [small, large] = [await emptyDatabase(), await emptyDatabase()];
    await importArchive({ db: small.db, databaseUrl: small.url }, readArchiveOf(backup));
    // Tables that an administrator has changed keep their properties, and are filled instead.
    await large.db.raw('CREATE VIEW site_names AS SELECT name FROM sites');
    await large.db.raw('GRANT SELECT ON racks TO PUBLIC');
    const before = await describeSchema(large.db);
    const { manifest, replaced } = await importArchive(
      { db: large.db, databaseUrl: large.url },
      readArchiveOf(backup),
      ALL_TABLES_ARE_LARGE,
    );
    const filled = manifest.tables.filter(({ rows }) => rows > 0).map(({ name }) => name);
    expect(filled).toEqual(expect.arrayContaining(['ip_addresses', 'jobs', 'audit_entries']));
    // Log lines are in partitions, which are filled as well.
    const kept = ['sites', 'racks', 'job_logs', 'audit_archives'];
    expect(replaced.toSorted()).toEqual(filled.filter((name) => !kept.includes(name)).toSorted());
    expect(await describeSchema(large.db)).toEqual(before);
    const dump = async (url: string) => {
      const all = await dumpTables(url, [...STATE_TABLES, ...HISTORY_TABLES]);
      // The job of the backup failed at the time of each restore.
      const jobs = all.jobs?.map((line) => (line.includes('outcome_unknown') ? 'failed' : line));
      // Each restore says itself that it was made.
      const others = (lines?: string[]) =>
        lines?.filter((line) => !/,restore.completed,|,backup.restore,done,/.test(line));
      return { ...all, jobs, events: others(all.events), audit_entries: others(all.audit_entries) };
    };
    expect(await dump(large.url)).toEqual(await dump(small.url));
    expect(await readQuotas(large.db)).toEqual(await readQuotas(small.db));
    // A copy does not go on with an audit archive that its original was writing.
    expect(await large.db('audit_archives').pluck('id')).toEqual([proven.id]);
    expect(await large.db('site_names').pluck('name')).toEqual(['platform-ams1']);
    for (const table of ['cable_ends', 'event_head'])
      expect([table, await large.db(table).count({ n: '*' })]).toEqual([
        table,
        await small.db(table).count({ n: '*' }),
      ]);
  }, 60_000);

  test('can be repeated when it is killed: each time the database is empty or has everything', async () => {
    const backup = await createBackup({ label: 'killed' });
    const { url, db } = await emptyDatabase();
    const before = await describeSchema(db);
    const file = path.join(archives.folder, backup.archive);
    const restore = () =>
      spawn(process.execPath, ['test/support/restoreProcess.ts', url, file, MASTER_KEY], {
        cwd: ROOT,
        env: { ...process.env, NODE_COMPILE_CACHE: COMPILE_CACHE },
        stdio: 'inherit',
      });
    const isDone = 'EXISTS (SELECT FROM public.devices)';
    const killBoth = async () => {
      await killBefore(url, { command: 'CREATE INDEX', condition: 'true' }, restore);
      await killBefore(url, { command: 'DROP SCHEMA', condition: isDone }, restore);
    };
    await Promise.all([killBoth(), secondIsRefused(backup)]);
    const { replaced } = await importArchive(
      { db, databaseUrl: url },
      readArchiveOf(backup),
      ALL_TABLES_ARE_LARGE,
    );
    expect(replaced).toContain('devices');
    expect(await describeSchema(db)).toEqual(before);
    expect(await dumpTables(url, STATE_TABLES)).toEqual(
      await dumpTables(app.databaseUrl, STATE_TABLES),
    );
  }, 60_000);

  test('counts the rows of replaced tables for each quota that triggers count', async () => {
    const { rows } = await app.deps.db.raw(
      `SELECT DISTINCT tgrelid::regclass::text AS name,
         coalesce(nullif(split_part(encode(tgargs, 'escape'), '\\000', 1), ''), 'inventoryRecords') AS quota
       FROM pg_trigger WHERE tgname LIKE 'quota\\_%' AND NOT tgisinternal`,
    );
    const backedUp = new Set<string>([...STATE_TABLES, ...HISTORY_TABLES]);
    const counted = (rows as { name: string; quota: string }[])
      .filter(({ name }) => backedUp.has(name))
      .map(({ name, quota }) => `${name} ${quota}`);
    expect(counted.length).toBeGreaterThan(15);
    expect(COUNTED_ROWS.map(([name, quota]) => `${name} ${quota}`).toSorted()).toEqual(
      counted.toSorted(),
    );
  });
});

/** While a restore has its schema, a second one is refused, and leaves the schema to the first. */
async function secondIsRefused(backup: { archive: string }): Promise<void> {
  const { url, db } = await emptyDatabase();
  await db.raw('CREATE SCHEMA import_archive');
  const first = await db.transaction();
  await first.raw(`SELECT pg_advisory_xact_lock(${lockKeySql('staging', `'import_archive'`)})`);
  const second = importArchive({ db, databaseUrl: url }, readArchiveOf(backup));
  await expect(second).rejects.toBeInstanceOf(StagingBusy);
  await first.rollback();
  expect(await describeSchema(db)).toContain('schema import_archive');
}

const ALL_TABLES_ARE_LARGE = { largeTableBytes: 1 };

/** What tenants own, as the triggers have counted it. */
const readQuotas = async (db: Knex) =>
  (
    await db.raw<{ rows: unknown[] }>(
      `SELECT tenant_id, quota, sum(change) AS used FROM quota_usage
       GROUP BY tenant_id, quota HAVING sum(change) <> 0 ORDER BY tenant_id, quota`,
    )
  ).rows;

/** Columns, constraints, indexes, triggers and rights of all tables. */
async function describeSchema(db: Knex): Promise<string[]> {
  const { rows } = await db.raw<{ rows: { line: string }[] }>(
    `SELECT concat_ws(' ', 'column', table_name, column_name, ordinal_position, udt_name, collation_name,
       is_nullable, column_default, is_identity, generation_expression) AS line
     FROM information_schema.columns WHERE table_schema = 'public'
     UNION ALL SELECT concat_ws(' ', 'constraint', conrelid::regclass, conname, convalidated,
       pg_get_constraintdef(oid)) FROM pg_constraint WHERE connamespace = 'public'::regnamespace
     UNION ALL SELECT concat_ws(' ', 'index', indexdef) FROM pg_indexes WHERE schemaname = 'public'
     UNION ALL SELECT concat_ws(' ', 'trigger', tgenabled, pg_get_triggerdef(oid)) FROM pg_trigger
       WHERE NOT tgisinternal
     UNION ALL SELECT concat_ws(' ', 'relation', oid::regclass, relkind, relpersistence, relacl,
       reloptions) FROM pg_class WHERE relnamespace = 'public'::regnamespace
     UNION ALL SELECT concat_ws(' ', 'schema', nspname) FROM pg_namespace WHERE nspname !~ '^pg_'
     ORDER BY 1`,
  );
  // PostgreSQL may write a condition that it has read again with fewer parentheses.
  return rows.map(({ line }) => line.replaceAll(/[()]/g, ''));
}

describe('an archive of another version', () => {
  /**
   * Two migrations that are yet to come: a column that gets its value from others, and one with
   * another name.
   */
  const laterMigrations = {
    ...MIGRATIONS,
    '9998_later': {
      up: (knex: Knex) =>
        knex.raw(`ALTER TABLE sites ADD shout text; UPDATE sites SET shout = upper(name)`),
      down: (knex: Knex) => knex.raw('ALTER TABLE sites DROP shout'),
    },
    '9999_later': {
      up: (knex: Knex) => knex.raw('ALTER TABLE racks RENAME serial TO serial_number'),
      down: (knex: Knex) => knex.raw('ALTER TABLE racks RENAME serial_number TO serial'),
    },
  };

  test.each(['snapshot', 'portable'])(
    'of an older version (%s) is migrated before it is restored',
    async (engine) => {
      const backup = await createBackup({ engine });
      const { url, db } = await emptyDatabase();
      for (const name of ['9998_later', '9999_later'] as const) await laterMigrations[name].up(db);
      await importArchive({ db, databaseUrl: url }, readArchiveOf(backup), {
        migrations: laterMigrations,
      });
      expect(await db('sites').pluck('shout')).toEqual(['PLATFORM-AMS1']);
      const names = STATE_TABLES.filter((name) => !['sites', 'racks'].includes(name));
      expect(await dumpTables(url, names)).toEqual(await dumpTables(app.databaseUrl, names));
      expect(await db('cable_ends').count({ n: '*' })).toEqual([{ n: 4 }]);
    },
    60_000,
  );

  test('of a newer version is refused', async () => {
    const backup = await createBackup();
    await app.deps.db('backups').where({ id: backup.id }).update({ schema_version: '9999_later' });
    const problem = await expectProblem(
      admin(app).post('/api/backup/restore', { backupId: backup.id }),
      409,
      'restore_invalid',
    );
    expect(problem.detail).toContain('9999_later');
    // The version in the header of the archive counts, too.
    const { url, db } = await emptyDatabase();
    const older = Object.fromEntries(Object.entries(MIGRATIONS).slice(0, -1));
    await db('schema_migrations')
      .where({ name: Object.keys(MIGRATIONS).at(-1) })
      .del();
    await expect(
      importArchive({ db, databaseUrl: url }, readArchiveOf(backup), { migrations: older }),
    ).rejects.toThrow('does not know');
  });

  test('of the first version can be restored', async () => {
    const bytes = Buffer.from(await readFile(FIRST_ARCHIVE, 'utf8'), 'base64');
    const { url, db } = await emptyDatabase();
    const { header, manifest } = await importArchive(
      { db, databaseUrl: url },
      readArchive(Readable.from([bytes]), unseal),
    );
    expect([header.schemaVersion, manifest.rows > 100]).toEqual(['0008_backups', true]);
    expect([
      await db('devices').orderBy('name').pluck('name'),
      await db('cable_ends').count({ n: '*' }),
      await db('webhooks').count({ n: '*' }),
    ]).toEqual([['d1', 'd2', 'd3'], [{ n: 4 }], [{ n: 1 }]]);
    expect((await db('sites').first()).description).toBe('Zürich\nline two');
    // What an older version did not know has the value that its migration adds.
    expect(new Set((await db('roles').pluck('job_types')).flat())).toEqual(new Set());
  });
});
