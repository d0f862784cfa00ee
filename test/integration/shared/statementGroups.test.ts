import { expect, test } from '@jest/globals';
import type { Knex } from '../../../db/core/knex.ts';
import { withDatabase } from '../../support/database.ts';

// The module is loaded for this file: a process has a limited number of names, which other files may have used up.
const { inPieces, prepared } = (await import(
  new URL('../../../db/core/prepared.ts?own', import.meta.url).href
)) as typeof import('../../../db/core/prepared.ts');

let db: Knex;
withDatabase((opened) => (db = opened));

type Connection = { connection: NodeJS.EventEmitter };

/** The number of answers of the server while `use` runs, on the only connection. */
async function answersTo(use: () => Promise<unknown>): Promise<number> {
  const client = db.client as {
    acquireConnection(): Promise<Connection>;
    releaseConnection(connection: Connection): Promise<void>;
  };
  const connection = await client.acquireConnection();
  await client.releaseConnection(connection);
  let answers = 0;
  const count = () => (answers += 1);
  connection.connection.on('readyForQuery', count);
  await use().finally(() => connection.connection.off('readyForQuery', count));
  return answers;
}

type Options = { parent?: string | null; divisor?: number; name?: string };

/** A lock, a read and a write, which its transaction ends with. */
const createRegion = (id: string, { parent = null, divisor = 1, name = id }: Options = {}) =>
  db.transaction(async (trx) => {
    await prepared(trx, 'SELECT pg_advisory_xact_lock(1 / ?::integer)', [divisor], { waits: true });
    const { rows } = await prepared<{ found: number }>(
      trx,
      'SELECT count(*) AS found FROM regions WHERE name = ?',
      [name],
    );
    await prepared(
      trx,
      "INSERT INTO regions (id, tenant_id, name, parent_id) VALUES (?, 'platform', ?, ?)",
      [id, name, parent],
      { isLast: true },
    );
    return rows[0]?.found;
  });
const regions = () => db('regions').orderBy('id').pluck('id');

test('a transaction of a lock, a read and a write takes two round trips', async () => {
  // The first time, the statements are parsed.
  expect(await createRegion('reg_a')).toBe(0);
  expect(await answersTo(() => createRegion('reg_b'))).toBe(2);
  expect(await regions()).toEqual(['reg_a', 'reg_b']);
  expect(await answersTo(() => db.transaction(() => Promise.resolve()))).toBe(0);
});

test.each([
  ['a statement that waits', { divisor: 0 }, '22012'],
  ['the last statement', { name: 'reg_a' }, '23505'],
  ['its COMMIT', { parent: 'reg_nowhere' }, '23503'],
])('a transaction writes nothing when %s fails', async (_, options: Options, code) => {
  const before = await regions();
  await expect(createRegion('reg_failed', options)).rejects.toMatchObject({ code });
  expect(await regions()).toEqual(before);
  // The connection is usable, and its next transaction is committed.
  expect(await answersTo(() => createRegion(`reg_${code}`))).toBe(2);
  expect(await regions()).toEqual([...before, `reg_${code}`].sort());
});

/** A number for each row that the server has computed. */
const NUMBERS = "SELECT n, nextval('numbered_rows') AS at FROM generate_series(1, ?) AS n";

/** Reads rows in pieces of two in a transaction of its own, until `upTo` have come. */
const readNumbers = (count: number, upTo: number, isPrepared: boolean) =>
  db.transaction(async (trx) => {
    const found: number[] = [];
    const options = { maxRows: 2, isPrepared };
    for await (const piece of inPieces<{ n: number }>(trx, NUMBERS, [count], options)) {
      expect(piece.length).toBeLessThanOrEqual(2);
      found.push(...piece.map(({ n }) => n));
      if (found.length >= upTo) break;
    }
    return found;
  });

test.each([true, false])('a result comes in pieces, prepared: %s', async (isPrepared) => {
  await db.raw('CREATE SEQUENCE IF NOT EXISTS numbered_rows');
  const computed = async () => {
    const { rows } = await db.raw<{ rows: { at: number }[] }>(
      "SELECT nextval('numbered_rows')::integer AS at",
    );
    return rows[0]?.at ?? 0;
  };
  const read = (count: number, upTo: number) => readNumbers(count, upTo, isPrepared);
  expect(await read(5, 5)).toEqual([1, 2, 3, 4, 5]);
  const before = await computed();
  expect(await read(1_000, 3)).toEqual([1, 2, 3, 4]);
  expect((await computed()) - before).toBe(5);
  // A small result costs one answer, as COMMIT does.
  expect(await answersTo(() => read(1, 1))).toBe(2);
  expect(await read(0, 1)).toEqual([]);
});

test('a transaction that fails before its first statement sends nothing', async () => {
  const failing = () =>
    db
      .transaction(async (trx) => {
        await prepared(trx, 'SELECT pg_advisory_xact_lock(1 / ?::integer)', [1], { waits: true });
        throw new Error('nothing to do');
      })
      .catch(() => undefined);
  expect(await answersTo(failing)).toBe(0);
  expect(await answersTo(() => db.raw('SELECT 1'))).toBe(1);
});

/** A statement that the connection has not parsed yet, so that it is not grouped. */
const configure = (trx: Knex, value: string) =>
  prepared(trx, `SELECT set_config('holdfast.test', '${value}', true)`, [], { waits: true });

test('no statement overtakes those that are sent by themselves before it', async () => {
  const seen = await db.transaction(async (trx) => {
    await configure(trx, 'before');
    const read = () =>
      prepared<{ value: string }>(trx, "SELECT current_setting('holdfast.test') AS value", []);
    return Promise.all([read(), read()]);
  });
  expect(seen.flatMap(({ rows }) => rows)).toEqual([{ value: 'before' }, { value: 'before' }]);

  const before = await regions();
  const rolledBack = db.transaction(async (trx) => {
    await configure(trx, 'rolled back');
    const write = prepared(
      trx,
      "INSERT INTO regions (id, tenant_id, name) VALUES ('reg_late', 'platform', 'late')",
      [],
    );
    await Promise.all([write, Promise.reject(new Error('not now'))]);
  });
  await expect(rolledBack).rejects.toThrow('not now');
  expect(await regions()).toEqual(before);
});

test('a value that cannot be sent fails its transaction only', async () => {
  const circular: Record<string, unknown> = {};
  circular.self = circular;
  const failing = () =>
    db.transaction((trx) => prepared(trx, 'SELECT ?::json', [circular])).catch(() => 'failed');
  expect(await answersTo(async () => expect(await failing()).toBe('failed'))).toBe(0);
  expect(await answersTo(() => db.raw('SELECT 1'))).toBe(1);
});

test('the server describes a result once, and later rows are as the first ones', async () => {
  const read = (n: number) =>
    prepared<Record<string, unknown>>(
      db,
      `SELECT n, n::bigint AS big, '2026-01-02T03:04:05Z'::timestamptz AS at, json_build_object('n', n) AS data,
         ARRAY[n::text] AS list, '\\x00ff'::bytea AS bytes, NULL AS nothing
       FROM generate_series(1, ?::integer) AS n`,
      [n],
    );
  const described: unknown[] = [];
  const first = await read(2);
  const client = db.client as {
    acquireConnection(): Promise<Connection>;
    releaseConnection(c: Connection): Promise<void>;
  };
  const connection = await client.acquireConnection();
  await client.releaseConnection(connection);
  connection.connection.on('rowDescription', (message) => described.push(message));
  const again = await read(2);
  expect(described).toEqual([]);
  expect(again).toEqual(first);
  expect(first.rows[1]).toEqual({
    n: 2,
    big: 2,
    at: new Date('2026-01-02T03:04:05Z'),
    data: { n: 2 },
    list: ['2'],
    bytes: Buffer.from([0, 255]),
    nothing: null,
  });
  expect((await read(0)).rows).toEqual([]);
});

test('a prepared statement fails when a migration has changed its columns', async () => {
  await db.raw('CREATE TABLE changing (a integer); INSERT INTO changing VALUES (1)');
  const read = () => prepared<{ a: unknown }>(db, 'SELECT a FROM changing', []);
  expect((await read()).rows).toEqual([{ a: 1 }]);
  await db.raw('ALTER TABLE changing ALTER a TYPE text');
  await expect(read()).rejects.toMatchObject({ code: '0A000' });
});
