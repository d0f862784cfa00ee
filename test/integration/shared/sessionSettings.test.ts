import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { withBackupConnection } from '../../../db/backups/backupConnection.ts';
import { openDatabase, type DatabaseSettings, type Knex } from '../../../db/core/knex.ts';
import { createNotifications } from '../../../db/core/notifications.ts';
import { createLog } from '../../../platform/log.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';

const log = createLog('silent', false);

const open = (url: string, more: Partial<DatabaseSettings> = {}) =>
  openDatabase({ url, poolSize: 1, log, statementTimeoutMs: 0, ...more });

let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase({ empty: true });
  const db = open(database.url);
  await db.raw(
    `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET statement_timeout = 7000', current_database()); END $$`,
  );
  await db.destroy();
});
afterAll(() => database.drop());

const settingsOf = async (db: Knex) => {
  const { rows } = await db.raw<{ rows: object[] }>(
    `SELECT current_setting('statement_timeout') AS statement,
       current_setting('idle_in_transaction_session_timeout') AS pause,
       current_setting('holdfast.quota_defaults', true) AS quotas`,
  );
  await db.destroy();
  return rows[0];
};

test('sessions have their own limits, whatever those of the database are', async () => {
  expect(await settingsOf(open(database.url))).toEqual({
    statement: '0',
    pause: '30s',
    quotas: null,
  });
  const limited = open(database.url, { statementTimeoutMs: 1_500, quotaDefaults: { users: 3 } });
  expect(await settingsOf(limited)).toEqual({
    statement: '1500ms',
    pause: '30s',
    quotas: '{"users":3}',
  });
});

/** The names of the parameters with which `connect` logs in to the server at `url`. */
async function loginParameters(connect: (url: string) => () => Promise<unknown>) {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const { port } = server.address() as AddressInfo;
  const stop = connect(`postgres://holdfast:secret@127.0.0.1:${port}/holdfast`);
  const [socket] = await accepted;
  const [packet] = (await once(socket, 'data')) as [Buffer];
  // Its length and the version of the protocol, then names and values.
  const texts = packet.toString('utf8', 8).split('\0');
  server.close();
  socket.destroy();
  await stop();
  return texts.filter((name, i) => i % 2 === 0 && name !== '').sort();
}

/** What poolers know of every client. PgBouncer refuses others. */
const KNOWN = ['application_name', 'client_encoding', 'database', 'user'];

test.each<[string, (url: string) => () => Promise<unknown>]>([
  [
    'the pool',
    (url) => {
      const db = open(url, { statementTimeoutMs: 1_500 });
      const asked = db.raw('SELECT 1').catch(() => undefined);
      return () => asked.then(() => db.destroy());
    },
  ],
  [
    'the listener',
    (url) => {
      const notifications = createNotifications(url, log);
      notifications.start();
      return () => notifications.stop();
    },
  ],
  [
    'a backup',
    (url) => {
      const done = withBackupConnection(url, AbortSignal.timeout(60_000), () => Promise.resolve());
      return () => done.catch(() => undefined);
    },
  ],
])('%s logs in without settings of its session', async (_, connect) => {
  const names = await loginParameters(connect);
  expect(names).toContain('user');
  expect(names.filter((name) => !KNOWN.includes(name))).toEqual([]);
});
