import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll } from '@jest/globals';
import pg from 'pg';
import { openDatabase, type Knex } from '../../db/core/knex.ts';
import { createLog } from '../../platform/log.ts';

const serverUrl = () => process.env.TEST_POSTGRES_URL ?? '';

async function withAdminClient<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: `${serverUrl()}postgres` });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

export type TestDatabase = { url: string; drop(): Promise<void> };

/** A database of this file's own; a copy of the migrated template unless it is to be `empty`. */
export async function createDatabase({
  empty = false,
  encoding = 'UTF8',
} = {}): Promise<TestDatabase> {
  const name = `test_${randomBytes(6).toString('hex')}`;
  await withAdminClient((client) =>
    // Copied as files: written through the WAL, a copy costs ten times the processor time.
    client.query(
      `CREATE DATABASE ${name} TEMPLATE ${empty ? 'template0' : 'template'} ENCODING '${encoding}' STRATEGY FILE_COPY`,
    ),
  );
  return {
    url: `${serverUrl()}${name}`,
    drop: () =>
      withAdminClient(
        async (client) => void (await client.query(`DROP DATABASE ${name} WITH (FORCE)`)),
      ),
  };
}

/** Opens a database of the test file's own, without the product, through one connection. */
export function withDatabase(onReady: (db: Knex) => void): void {
  let database: TestDatabase | undefined;
  let db: Knex | undefined;
  beforeAll(async () => {
    database = await createDatabase();
    db = openDatabase({
      url: database.url,
      poolSize: 1,
      statementTimeoutMs: 0,
      log: createLog('silent', false),
    });
    onReady(db);
  });
  afterAll(async () => {
    await db?.destroy();
    await database?.drop();
  });
}
