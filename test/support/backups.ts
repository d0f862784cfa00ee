import { afterAll, beforeAll, expect } from '@jest/globals';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { quoteIdentifier, readColumns } from '../../db/backups/catalog.ts';
import { queryOn } from '../../db/backups/sql.ts';
import { TABLES } from '../../db/backups/tables.ts';
import { openDatabase } from '../../db/core/knex.ts';
import type { BackupRecord, RestoreRecord, ValidationRecord } from '../../api/backups/schemas.ts';
import { readArchive } from '../../platform/archive/index.ts';
import { createLog } from '../../platform/log.ts';
import { createFolderStore } from '../../platform/stores/folder.ts';
import { unsealWith } from '../../services/backups/archives.ts';
import { importArchive } from '../../services/backups/importArchive.ts';
import { startApp, startAppOn, type TestApp } from './app.ts';
import type { TestClient } from './client.ts';
import { createDatabase } from './database.ts';
import { admin } from './users.ts';

/** A temporary folder for archives. */
export async function createArchiveFolder() {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-backups-'));
  return {
    folder,
    env: { HOLDFAST_BACKUP_DIR: folder },
    files: async (): Promise<string[]> => (await readdir(folder)).sort(),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

export type BackupFixture = {
  app: TestApp;
  root: TestClient;
  archives: Awaited<ReturnType<typeof createArchiveFolder>>;
};

/** Starts an application with an archive folder and an administrator for a test file. */
export function withBackups(
  onReady: (fixture: BackupFixture) => Promise<void> | void,
  options?: Parameters<typeof startApp>[1],
): void {
  let fixture: BackupFixture | undefined;
  beforeAll(async () => {
    const archives = await createArchiveFolder();
    const app = await startApp(archives.env, options);
    fixture = { app, root: admin(app), archives };
    await onReady(fixture);
  });
  afterAll(async () => {
    await fixture?.app.stop();
    await fixture?.archives.remove();
  });
}

const WAIT = { prefer: 'wait=50' };

/** Makes backups, which must be completed. */
export const backupCreator =
  (client: () => TestClient) =>
  async (request: object = {}): Promise<BackupRecord> => {
    const backup = await client()
      .post<BackupRecord>('/api/backup/create', request, WAIT)
      .expect(201);
    expect([backup.status, backup.error]).toEqual(['completed', null]);
    return backup;
  };

/** Requests restores without a pre-restore backup and waits for their end. */
export const restoreRequester = (client: () => TestClient) => (request: object) =>
  client().post<RestoreRecord>(
    '/api/backup/restore',
    { preRestoreBackup: false, ...request },
    WAIT,
  );

/** Restores backups, which must succeed. */
export const restorer =
  (client: () => TestClient) =>
  async (request: object): Promise<SucceededRestore> => {
    const restore = await restoreRequester(client)(request).expect(202);
    expect([restore.status, restore.error]).toEqual(['succeeded', null]);
    return restore as SucceededRestore;
  };

type SucceededRestore = RestoreRecord & { outcome: Record<string, unknown> };

/** Validates restores. */
export const restoreValidator =
  (client: () => TestClient) =>
  (request: object): Promise<Validation> =>
    client().post<Validation>('/api/backup/restore/validate', request).expect(200);

/**
 * Restores the archive of a backup into an empty database, and starts an application with it and the same store,
 * which runs nothing in the background.
 */
export async function recover(
  { app, archives }: Pick<BackupFixture, 'app' | 'archives'>,
  { archive }: BackupRecord,
): Promise<{ app: TestApp; stop(): Promise<void> }> {
  const database = await createDatabase();
  const log = createLog('silent', false);
  const db = openDatabase({ url: database.url, poolSize: 3, statementTimeoutMs: 0, log });
  const bytes = createFolderStore(archives.folder).read(archive);
  await importArchive(
    { db, databaseUrl: database.url },
    readArchive(bytes, unsealWith(app.deps.vault)),
  ).finally(() => db.destroy());
  const recovered = await startAppOn(database.url, archives.env, { idle: true });
  return {
    app: recovered,
    async stop() {
      await recovered.stop();
      await database.drop();
    },
  };
}

/** The result of a validation that could read the archive. */
export type Validation = ValidationRecord & {
  preview: NonNullable<ValidationRecord['preview']>;
  planHash: string;
};

/**
 * All rows of tables as text, in a stable order. Columns that a restore does not simply set are omitted, such as versions.
 */
export async function dumpTables(
  url: string,
  names: readonly string[],
  where = 'true',
): Promise<Record<string, string[]>> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`SET timezone = 'UTC'`);
    const found: Record<string, string[]> = {};
    const existing = await readColumns(queryOn(client), 'public');
    for (const name of names) {
      const table = TABLES.find((each) => each.name === name);
      const omitted = [
        ...(table?.preserved ?? []),
        ...Object.keys(table?.guarded ?? {}),
        ...(table?.mode === 'state' ? ['version'] : []),
      ];
      const columns = (existing.get(name) ?? [])
        .map((column) => column.name)
        .filter((column) => !omitted.includes(column));
      const text = `ROW(${columns.map((column) => quoteIdentifier(column)).join(', ')})::text`;
      const { rows } = await client.query<{ line: string }>(
        `SELECT ${text} AS line FROM public.${quoteIdentifier(name)} AS t WHERE ${where} ORDER BY 1`,
      );
      found[name] = rows.map(({ line }) => line);
    }
    return found;
  } finally {
    await client.end();
  }
}

/** The tables that a restore makes equal to the backup, and those to which it only adds rows. */
export const STATE_TABLES = TABLES.filter(({ mode }) => mode === 'state').map(({ name }) => name);
export const HISTORY_TABLES = TABLES.filter(({ mode }) => mode === 'history').map(
  ({ name }) => name,
);
