import { randomBytes } from 'node:crypto';
import pg from 'pg';

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
export async function createDatabase({ empty = false } = {}): Promise<TestDatabase> {
  const name = `test_${randomBytes(6).toString('hex')}`;
  await withAdminClient((client) =>
    // Copied as files: written through the WAL, a copy costs ten times the processor time.
    client.query(
      `CREATE DATABASE ${name} TEMPLATE ${empty ? 'template0' : 'template'} STRATEGY FILE_COPY`,
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
