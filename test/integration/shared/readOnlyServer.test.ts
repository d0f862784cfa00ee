import { expect, test } from '@jest/globals';
import { ping, type Knex } from '../../../db/core/knex.ts';
import { isOutage } from '../../../domain/shared/outage.ts';
import { createLog } from '../../../platform/log.ts';
import { createReadiness } from '../../../services/shared/readiness.ts';
import { withDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';

let db: Knex;
withDatabase((opened) => (db = opened));

/** What a connection sees of a primary that has become a standby: it is the only one of the pool. */
const becomeReadOnly = () => db.raw('SET default_transaction_read_only = on');

const write = () => db('idempotency_keys').where({ key: 'x' }).delete();

test('a refused write is an outage, and the next one uses another connection', async () => {
  await becomeReadOnly();
  const error: unknown = await write().catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: '25006' });
  expect(isOutage(error)).toBe(true);
  expect(await write()).toBe(0);
});

test('a transaction that is refused leaves its connection, too', async () => {
  await becomeReadOnly();
  await expect(db.transaction((trx) => trx('idempotency_keys').delete())).rejects.toMatchObject({
    code: '25006',
  });
  expect(await write()).toBe(0);
});

test('the database is not ready while it only reads', async () => {
  await becomeReadOnly();
  await expect(ping(db)).rejects.toMatchObject({ code: '25006' });
  await ping(db);

  const readiness = createReadiness({
    db,
    schema: { check: () => Promise.resolve('current'), isClosed: () => false },
    temporal: { check: () => Promise.resolve() },
    worker: undefined,
    workerRequired: false,
    log: createLog('silent', false),
  });
  const { rows } = await db.raw<{ rows: [{ name: string }] }>('SELECT current_database() AS name');
  const setReadOnly = (value: string) =>
    db.transaction(async (trx) => {
      await trx.raw('SET TRANSACTION READ WRITE');
      await trx.raw(`ALTER DATABASE ?? SET default_transaction_read_only = ${value}`, [
        rows[0].name,
      ]);
    });
  const untilPostgresIs = (state: string) =>
    eventually(
      () => readiness.report().components.postgres,
      (postgres) => postgres === state,
    );
  readiness.start();
  try {
    await untilPostgresIs('ready');
    await setReadOnly('on');
    await becomeReadOnly();
    await untilPostgresIs('unavailable');
    expect(readiness.takesRequests()).toBe(true);
    await setReadOnly('off');
    await untilPostgresIs('ready');
  } finally {
    await readiness.stop();
  }
});
