import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { copyRows } from '../../../db/backups/copyRows.ts';
import { withSnapshot, withSnapshotReaders } from '../../../db/backups/snapshot.ts';
import { TABLES } from '../../../db/backups/tables.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import type { RowSink } from '../../../platform/archive/index.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
let client: pg.Client;
beforeAll(async () => {
  database = await createDatabase();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query(
    `INSERT INTO tags (id, name)
     SELECT 'tag_' || n, repeat('x', 50) || n FROM generate_series(1, 3000) AS n`,
  );
});
afterAll(async () => {
  await client.end();
  await database.drop();
});

const TAGS = assertDefined(
  TABLES.find(({ name }) => name === 'tags'),
  'tags',
);
const PLATFORM = { tenantId: null };
const { signal } = new AbortController();

/** Collects rows as text; it accepts one chunk at a time. */
function createCollector(): RowSink & { rows: string[] } {
  const rows: string[] = [];
  let row = '';
  return {
    rows,
    write: (bytes, start, end) => void (row += bytes.toString('utf8', start, end)),
    endRow() {
      rows.push(row);
      row = '';
    },
    accepted: () => new Promise((resolve) => setImmediate(resolve)),
  };
}

const inOrder = (rows: readonly string[]) => rows.toSorted();

test('the parts of a table have each row of the snapshot once, whatever is written later', async () => {
  const { rows: before } = await client.query<{ line: string }>('SELECT id AS line FROM tags');
  const sinks = [createCollector(), createCollector()];
  await withSnapshot(database.url, PLATFORM, signal, async (snapshot) => {
    const copies = await snapshot.copies(TAGS, ['id'], 'snapshot', 5);
    expect(copies.length).toBeGreaterThan(5);
    await client.query(`UPDATE tags SET name = 'y' || name`);
    await client.query(`DELETE FROM tags WHERE id LIKE '%7'`);
    await client.query(`INSERT INTO tags (id, name) VALUES ('tag_later', 'later')`);
    const readers = { snapshotId: snapshot.id, count: 2 };
    await withSnapshotReaders(database.url, readers, async (connections) => {
      await Promise.all(
        connections.map(async (connection, at) => {
          const sink = assertDefined(sinks[at], 'sink');
          for (const sql of copies.filter((_, index) => index % 2 === at))
            await copyRows(connection, sql, sink);
        }),
      );
      // The connections can be used after their rows.
      expect(connections).toHaveLength(2);
      for (const connection of connections)
        expect((await connection.query('SELECT 1 AS n')).rows).toEqual([{ n: 1 }]);
    });
  });
  expect(inOrder(sinks.flatMap(({ rows }) => rows))).toEqual(
    inOrder(before.map(({ line }) => `${line}\n`)),
  );
});

test('a COPY reports the error of the database and of the sink', async () => {
  await withSnapshot(database.url, PLATFORM, signal, async ({ id }) => {
    const readers = { snapshotId: id, count: 1 };
    await withSnapshotReaders(database.url, readers, async ([connection]) => {
      const failing = 'COPY (SELECT 1 / (100 - n) FROM generate_series(1, 200) AS n) TO STDOUT';
      await expect(copyRows(connection, failing, createCollector())).rejects.toMatchObject({
        code: '22012',
      });
      await connection.query('ROLLBACK');
      const full = { ...createCollector(), accepted: () => Promise.reject(new Error('full')) };
      await expect(copyRows(connection, 'COPY tags TO STDOUT', full)).rejects.toThrow('full');
    });
  });
});
