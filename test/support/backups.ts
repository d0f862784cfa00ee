import { afterAll, beforeAll, expect } from '@jest/globals';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { columnsOf, quoted } from '../../db/backups/catalog.ts';
import { askOf } from '../../db/backups/snapshot.ts';
import { TABLES } from '../../db/backups/tables.ts';
import { startApp, type TestApp } from './app.ts';
import type { TestClient } from './client.ts';
import { admin } from './users.ts';

/** A folder for archives, of one test file. */
export async function archiveFolder() {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-backups-'));
  return {
    folder,
    env: { HOLDFAST_BACKUP_DIR: folder },
    files: async (): Promise<string[]> => (await readdir(folder)).sort(),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

type Backups = {
  app: TestApp;
  root: TestClient;
  archives: Awaited<ReturnType<typeof archiveFolder>>;
};

/** The product with a folder of archives, for a test file, and somebody who may do everything; `made` is told when it is there. */
export function withBackups(made: (there: Backups) => Promise<void> | void): void {
  let there: Backups | undefined;
  beforeAll(async () => {
    const archives = await archiveFolder();
    const app = await startApp(archives.env);
    there = { app, root: admin(app), archives };
    await made(there);
  });
  afterAll(async () => {
    await there?.app.stop();
    await there?.archives.remove();
  });
}

/** A backup that must be completed. */
export const backUp =
  (client: () => TestClient) =>
  async (request: object = {}): Promise<any> => {
    const { status, body } = await client().post('/api/backup/create', request, {
      prefer: 'wait=50',
    });
    expect([status, body.status, body.error]).toEqual([201, 'completed', null]);
    return body;
  };

/** Every row of these tables, as text, in the order of its key; what a restore leaves as it is (`own`) is left out. */
export async function dump(
  url: string,
  names: readonly string[],
  where = 'true',
): Promise<Record<string, string[]>> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`SET timezone = 'UTC'`);
    const found: Record<string, string[]> = {};
    for (const name of names) {
      const table = TABLES.find((each) => each.name === name);
      const columns = (await columnsOf(askOf(client), 'public', name))
        .map((column) => column.name)
        .filter((column) => !table?.own.includes(column));
      const text = `ROW(${columns.map((column) => quoted(column)).join(', ')})::text`;
      const { rows } = await client.query<{ line: string }>(
        `SELECT ${text} AS line FROM public.${quoted(name)} AS t WHERE ${where} ORDER BY 1`,
      );
      found[name] = rows.map(({ line }) => line);
    }
    return found;
  } finally {
    await client.end();
  }
}

/** The tables that a restore makes what they were, and those to which it only adds. */
export const STATE = TABLES.filter(({ mode }) => mode === 'state').map(({ name }) => name);
export const HISTORY = TABLES.filter(({ mode }) => mode === 'history').map(({ name }) => name);
