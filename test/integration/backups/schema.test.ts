import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { MIGRATIONS } from '../../../db/migrations/index.ts';
import { migrateUp } from '../../../db/core/migrate.ts';
import { openDatabase, type Knex } from '../../../db/core/knex.ts';
import { readArchive } from '../../../platform/archive/index.ts';
import { createLog } from '../../../platform/log.ts';
import { createFolderStore } from '../../../platform/stores/folder.ts';
import { createVault } from '../../../platform/vault.ts';
import { unsealWith } from '../../../services/backups/archives.ts';
import { restoreOnto } from '../../../services/backups/restoreOnto.ts';
import { startApp, startAppOn, type TestApp } from '../../support/app.ts';
import { archiveFolder, backUp, dump, HISTORY, STATE } from '../../support/backups.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { furnish } from '../../support/estate.ts';
import { admin, login } from '../../support/users.ts';

const run = promisify(execFile);
const ROOT = path.resolve(import.meta.dirname, '../..');
const unseal = unsealWith(createVault([{ id: 'test', key: Buffer.alloc(32, 7) }]));
/** Made by the first version that made archives, with the key of these tests, and kept as text. */
const FIRST = path.join(ROOT, 'test/fixtures/archive-0010.base64');

let archives: Awaited<ReturnType<typeof archiveFolder>>;
let app: TestApp;
const databases: TestDatabase[] = [];
const pools: Knex[] = [];
beforeAll(async () => {
  archives = await archiveFolder();
  app = await startApp(archives.env);
  await furnish(app);
});
afterAll(async () => {
  await Promise.all(pools.map((pool) => pool.destroy()));
  await app.stop();
  await Promise.all(databases.map((database) => database.drop()));
  await archives.remove();
});

async function emptyDatabase() {
  const database = await createDatabase({ empty: true });
  const db = openDatabase({
    url: database.url,
    poolSize: 3,
    statementTimeoutMs: 0,
    log: createLog('silent', false),
  });
  databases.push(database);
  pools.push(db);
  await migrateUp(db);
  return { url: database.url, db };
}

const archive = (backup: any) =>
  readArchive(createFolderStore(archives.folder).read(backup.archive as string), unseal);
const take = backUp(() => admin(app));

/** What changes when nothing has ended or is due: jobs that had not ended, times that are due, the trail of the backup itself. */
const unchanged = async (url: string) => {
  const all = await dump(url, [...STATE, ...HISTORY]);
  return { ...all, jobs: all.jobs?.filter((line) => !line.includes('backup.')), job_logs: [] };
};

describe('the command for the day the server is gone', () => {
  test('restores everything onto an empty database, row for row, and knows the archives again', async () => {
    await app.deps.sealer.seal();
    const backup = await take({ label: 'last' });
    const before = await unchanged(app.databaseUrl);
    const { url, db } = await emptyDatabase();
    const env = {
      ...process.env,
      DATABASE_URL: url,
      HOLDFAST_MASTER_KEYS: `test:${Buffer.alloc(32, 7).toString('base64')}`,
      ...archives.env,
    };
    const command = (...args: string[]) =>
      run(process.execPath, ['commands/archive.ts', ...args], {
        cwd: ROOT,
        env: { ...env, HOLDFAST_LOG_LEVEL: 'silent' },
      });
    expect((await command('list')).stdout).toContain(backup.archive);
    expect((await command('show', backup.archive)).stdout).toContain('the archive is whole');
    const rows = await command('rows', backup.archive, 'sites');
    expect([rows.stdout.split('\n').length, rows.stderr]).toEqual([
      2,
      expect.stringContaining('description'),
    ]);
    expect((await command('restore', backup.archive)).stdout).toMatch(/rows of .* are restored/);
    const after = await unchanged(url);
    // Of what the backup did after its snapshot nothing is known there.
    for (const name of [
      ...STATE,
      'deliveries',
      'approvals',
      'approval_assignees',
      'schedule_runs',
      'imports',
      'jobs',
    ])
      expect([name, after[name as 'jobs']]).toEqual([name, before[name as 'jobs']]);
    const entries = await db('audit_entries').whereNot('action', 'backup.adopt').pluck('id');
    expect(entries.length).toBeGreaterThan(50);
    expect(await app.deps.db('audit_entries').whereIn('id', entries).pluck('id')).toHaveLength(
      entries.length,
    );
    expect(await db('cable_ends').orderBy('interface_id')).toEqual(
      await app.deps.db('cable_ends').orderBy('interface_id'),
    );
    await expect(command('restore', backup.archive)).rejects.toMatchObject({
      stderr: expect.stringContaining('The database is not empty'),
    });
    // It is a working installation: people sign in, records are read and written, backups are there.
    const there = await startAppOn(url, archives.env);
    try {
      expect((await login(there, 'platform-ann')).status).toBe(200);
      expect((await admin(there).get('/api/inventory/devices')).body.items).toHaveLength(3);
      expect((await admin(there).post('/api/inventory/sites', { name: 'after' })).status).toBe(201);
      expect((await admin(there).get('/api/backup')).body.backups).toEqual([
        expect.objectContaining({
          id: backup.id,
          status: 'completed',
          label: 'found in the store',
        }),
      ]);
      const restored = await admin(there).post(
        '/api/backup/restore',
        { backupId: backup.id, safetyBackup: false },
        { prefer: 'wait=50' },
      );
      expect([restored.body.status, restored.body.error, restored.body.outcome.deleted]).toEqual([
        'succeeded',
        null,
        1,
      ]);
      await there.deps.sealer.seal();
      expect(await there.deps.sealer.verify('platform')).toMatchObject({ broken: null });
    } finally {
      await there.stop();
    }
  }, 120_000);

  test('says what is wrong with an archive, and leaves the database empty', async () => {
    const { url, db } = await emptyDatabase();
    const backup = await take({ label: 'damaged' });
    const bytes = await readFile(path.join(archives.folder, backup.archive));
    bytes[bytes.length - 100] = (bytes[bytes.length - 100] ?? 0) ^ 1;
    await expect(
      restoreOnto({ db, databaseUrl: url }, readArchive(Readable.from([bytes]), unseal)),
    ).rejects.toMatchObject({ code: 'archive_damaged' });
    expect(await db('devices').count({ n: '*' })).toEqual([{ n: 0 }]);
  });
});

describe('an archive of another version', () => {
  /** Two migrations that are yet to come: a column that gets its value from others, and one with another name. */
  const later = {
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
    'that is older (%s) is brought up to date before it is put in',
    async (engine) => {
      const backup = await take({ engine });
      const { url, db } = await emptyDatabase();
      for (const name of ['9998_later', '9999_later'] as const) await later[name].up(db);
      await restoreOnto({ db, databaseUrl: url }, archive(backup), { migrations: later });
      expect(await db('sites').pluck('shout')).toEqual(['PLATFORM-AMS1']);
      const names = STATE.filter((name) => !['sites', 'racks'].includes(name));
      expect(await dump(url, names)).toEqual(await dump(app.databaseUrl, names));
      expect(await db('cable_ends').count({ n: '*' })).toEqual([{ n: 4 }]);
    },
    60_000,
  );

  test('that is newer is refused', async () => {
    const backup = await take();
    await app.deps.db('backups').where({ id: backup.id }).update({ schema_version: '9999_later' });
    const answer = await admin(app).post('/api/backup/restore', { backupId: backup.id });
    expect([answer.status, answer.body.code, answer.body.detail]).toEqual([
      409,
      'restore_invalid',
      expect.stringContaining('9999_later'),
    ]);
    // What counts is what the archive says.
    const { url, db } = await emptyDatabase();
    const { '0010_backups': _, ...older } = MIGRATIONS;
    await expect(
      restoreOnto({ db, databaseUrl: url }, archive(backup), { migrations: older }),
    ).rejects.toThrow('does not know');
  });

  test('that the first version made can be restored by this one', async () => {
    const bytes = Buffer.from(await readFile(FIRST, 'utf8'), 'base64');
    const { url, db } = await emptyDatabase();
    const { header, manifest } = await restoreOnto(
      { db, databaseUrl: url },
      readArchive(Readable.from([bytes]), unseal),
    );
    expect([header.schemaVersion, manifest.rows > 100]).toEqual(['0010_backups', true]);
    expect([
      await db('devices').orderBy('name').pluck('name'),
      await db('cable_ends').count({ n: '*' }),
      await db('webhooks').count({ n: '*' }),
    ]).toEqual([['d1', 'd2', 'd3'], [{ n: 4 }], [{ n: 1 }]]);
    expect((await db('sites').first()).description).toBe('Zürich\nline two');
  });
});
