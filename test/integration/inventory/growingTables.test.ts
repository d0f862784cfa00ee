import { expect, test } from '@jest/globals';
import pg from 'pg';
import { startAppOn } from '../../support/app.ts';
import { createDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { admin } from '../../support/users.ts';

const BATCH = 1_000;
const BATCHES = 4;

/** Rows of prefixes that indexes have found, by the numbers that connections have reported at their end. */
async function foundRows(client: pg.Client): Promise<number> {
  const sql = `SELECT pg_stat_clear_snapshot(), idx_tup_fetch AS rows FROM pg_stat_user_tables WHERE relname = 'prefixes'`;
  const { rows } = await client.query<{ rows: string }>(sql);
  return Number(rows[0]?.rows);
}

/** How many other connections have not ended. */
async function countOthers(client: pg.Client): Promise<number> {
  const { rowCount } = await client.query(
    'SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
  );
  return rowCount ?? 0;
}

test('batches into a table that was analysed while it was empty read no more than others', async () => {
  const database = await createDatabase();
  const app = await startAppOn(database.url, {}, { idle: true });
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query('VACUUM ANALYZE');
  const records = Array.from({ length: BATCH * BATCHES }, (_, n) => ({
    cidr: `10.${n >> 8}.${n & 255}.0/24`,
  }));
  for (let at = 0; at < records.length; at += BATCH) {
    const mutations = records
      .slice(at, at + BATCH)
      .map((record) => ({ resource: 'prefixes', operation: 'create', record }));
    await admin(app).post('/api/inventory/bulk', { mode: 'all', mutations }).expect(200);
  }
  await app.stop();
  await eventually(
    () => countOthers(client),
    (count) => count === 0,
  );
  const found = await foundRows(client);
  await client.end();
  await database.drop();
  expect(found).toBeGreaterThan(0);
  // Reading the whole table for each record would find millions. The first batch cannot know better.
  expect(found).toBeLessThan(BATCH * BATCH * 2);
});
