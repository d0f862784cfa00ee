import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { BackupRecord } from '../../../api/backups/schemas.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { openDatabase, type Knex } from '../../../db/core/knex.ts';
import { readArchive } from '../../../platform/archive/index.ts';
import { createLog } from '../../../platform/log.ts';
import { createVault } from '../../../platform/vault.ts';
import { unsealWith } from '../../../services/backups/archives.ts';
import { importArchive } from '../../../services/backups/importArchive.ts';
import type { TestApp } from '../../support/app.ts';
import { backupCreator, restorer, restoreValidator, withBackups } from '../../support/backups.ts';
import type { TestClient } from '../../support/client.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { seedEstate } from '../../support/estate.ts';

const FIRST_ARCHIVE = path.resolve(import.meta.dirname, '../../fixtures/archive-0008.base64');

/** What a migration of a newer version adds: it may also remove what this version uses no more. */
const NEWER_MIGRATION = `
  ALTER TABLE sites ADD shout text COLLATE "C" NOT NULL DEFAULT 'none', ADD quiet text,
    ADD loud text GENERATED ALWAYS AS (upper(name)) STORED;
  CREATE TABLE newer (id text PRIMARY KEY, site_id text REFERENCES sites (id) DEFERRABLE);
  INSERT INTO schema_migrations (name, batch, migration_time) VALUES ('9998_newer', 999, now())`;

let app: TestApp;
let root: TestClient;
/** Backups of before and after the database was migrated. */
const backups: Record<string, BackupRecord> = {};
let empty: { database: TestDatabase; db: Knex };
withBackups(async (fixture) => {
  ({ app, root } = fixture);
  await seedEstate(app);
  for (const engine of ['snapshot', 'portable'])
    backups[`before, ${engine}`] = await backupCreator(() => root)({ engine });
  await app.deps.db.raw(NEWER_MIGRATION);
  await app.deps.db('sites').update({ shout: 'SITE' });
  for (const engine of ['snapshot', 'portable'])
    backups[`after, ${engine}`] = await backupCreator(() => root)({ engine });
});
beforeAll(async () => {
  const database = await createDatabase();
  const log = createLog('silent', false);
  const db = openDatabase({ url: database.url, poolSize: 3, statementTimeoutMs: 0, log });
  empty = { database, db };
});
afterAll(async () => {
  await empty.db.destroy();
  await empty.database.drop();
});

const cases = ['before', 'after'].flatMap((when) =>
  ['snapshot', 'portable'].map((engine) => `${when}, ${engine}`),
);

test.each(cases)('a backup is tested and restored on a newer schema (%s)', async (name) => {
  const { id: backupId, schemaVersion } = backups[name] ?? { id: '', schemaVersion: null };
  expect(schemaVersion === '9998_newer').toBe(name.startsWith('after'));
  const job = await root
    .post<JobRecord>(
      '/api/jobs',
      { type: 'backup.verify', payload: { backupId } },
      { prefer: 'wait=30' },
    )
    .expect(201);
  expect([job.status, job.error]).toEqual(['succeeded', null]);
  const { db } = app.deps;
  await db('sites').update({ description: 'changed', quiet: 'changed' });
  const validation = await restoreValidator(() => root)({ backupId });
  expect(validation.errors).toEqual([]);
  await restorer(() => root)({ backupId, planHash: validation.planHash });
  expect(
    await db('sites').select('shout', 'quiet', 'loud').where('description', 'changed'),
  ).toEqual([]);
  expect(new Set(await db('sites').pluck('shout'))).toEqual(
    new Set([name.startsWith('after') ? 'SITE' : 'none']),
  );
  expect(new Set(await db('sites').pluck('quiet'))).toEqual(new Set([null]));
});

test('an archive of the first version is restored into a newer schema', async () => {
  const bytes = Buffer.from(await readFile(FIRST_ARCHIVE, 'utf8'), 'base64');
  const { database, db } = empty;
  await db.raw(NEWER_MIGRATION);
  // What a newer version has removed is not written.
  await db.raw('ALTER TABLE sites DROP quiet');
  const unseal = unsealWith(createVault([{ id: 'test', key: Buffer.alloc(32, 7) }]));
  await importArchive(
    { db, databaseUrl: database.url },
    readArchive(Readable.from([bytes]), unseal),
  );
  expect(await db('sites').select('shout')).toEqual([{ shout: 'none' }]);
});
