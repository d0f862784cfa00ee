import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createNotifications, type Notifications } from '../../../db/core/notifications.ts';
import { openDatabase, type Knex } from '../../../db/core/knex.ts';
import { readSnapshot } from '../../../db/core/readSnapshot.ts';
import { notifyTopics } from '../../../db/core/unitOfWork.ts';
import { isOutage } from '../../../domain/shared/outage.ts';
import { createLog, type Log } from '../../../platform/log.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { startForwarder, type Forwarder } from '../../support/forwarder.ts';

const log = createLog('silent', false);

/** The limit of a statement, and how much later the answer may come. */
const LIMIT_MS = 400;
const MARGIN_MS = 1_000;

let database: TestDatabase;
let server: Forwarder;
let url: string;
let db: Knex;

beforeAll(async () => {
  database = await createDatabase();
  const direct = new URL(database.url);
  server = await startForwarder(direct);
  const through = new URL(direct);
  through.host = server.address;
  url = through.href;
});

beforeEach(() => {
  db = openDatabase({
    ...{ url, poolSize: 1, log },
    statementTimeoutMs: LIMIT_MS,
    answerMarginMs: MARGIN_MS,
  });
});

afterEach(() => db.destroy());

afterAll(async () => {
  await server.close();
  await database.drop();
});

async function errorOf(work: PromiseLike<unknown>): Promise<unknown> {
  try {
    await work;
    return undefined;
  } catch (error) {
    return error;
  }
}

test('a statement that is not answered fails, and the next one gets another connection', async () => {
  await db.raw('SELECT 1');
  server.freeze();
  const error = await errorOf(db.raw('SELECT 1'));
  expect(error).toMatchObject({ code: 'ETIMEDOUT' });
  expect(isOutage(error)).toBe(true);
  await db.raw('SELECT 1');
});

test('so does a transaction in which the server is lost', async () => {
  const error = await errorOf(
    db.transaction(async (trx) => {
      await trx.raw('SELECT 1');
      server.freeze();
      await trx.raw('SELECT 1');
    }),
  );
  // That of the rollback.
  expect(isOutage(error)).toBe(true);
  expect(await db.transaction(async (trx) => (await trx.raw('SELECT 1')).rowCount)).toBe(1);
});

test('statements that may take longer are waited for', async () => {
  const longMs = LIMIT_MS + MARGIN_MS + 1_500;
  const sleep = async (trx: Knex) => trx.raw('SELECT pg_sleep(?)', [longMs / 1_000]);
  await db.transaction(async (trx) => {
    await trx.raw('SET LOCAL statement_timeout = 0');
    await sleep(trx);
  });
  const options = { signal: new AbortController().signal, timeoutMs: 2 * longMs };
  await readSnapshot(db, options, sleep);
  // PostgreSQL ends it: the limit of the transactions before does not remain.
  expect(await errorOf(sleep(db))).toMatchObject({ code: '57014' });
}, 30_000);

describe('the connection that listens', () => {
  let changes: Notifications;
  let heard: number;

  beforeEach(async () => {
    changes = createNotifications(url, log);
    heard = 0;
    changes.on('a topic', () => (heard += 1));
    changes.start();
    await untilHeard();
  });

  afterEach(() => changes.stop());

  /** Notifies until the listener hears of it. */
  async function untilHeard(): Promise<void> {
    const before = heard;
    await eventually(
      async () => {
        await db.transaction(async (trx) => notifyTopics(trx, ['a topic']));
        return heard;
      },
      (count) => count > before,
    );
  }

  test('is replaced when its server does not answer', async () => {
    server.freeze();
    // The pool has its own way to notice.
    await errorOf(db.raw('SELECT 1'));
    heard = 0;
    await untilHeard();
  });

  test('is replaced when its server only reads', async () => {
    const setReadOnly = (value: string) =>
      db.transaction(async (trx) => {
        await trx.raw('SET TRANSACTION READ WRITE');
        await trx.raw(`ALTER DATABASE ?? SET default_transaction_read_only = ${value}`, [
          new URL(database.url).pathname.slice(1),
        ]);
      });
    const refusals: unknown[] = [];
    const warn = (fields: unknown) => void refusals.push(fields);
    await setReadOnly('on');
    await changes.stop();
    changes = createNotifications(url, Object.assign(Object.create(log) as Log, { warn }));
    changes.on('a topic', () => (heard += 1));
    changes.start();
    await eventually(
      () => refusals.length,
      (count) => count > 0,
    );
    await setReadOnly('off');
    await untilHeard();
  });
});
