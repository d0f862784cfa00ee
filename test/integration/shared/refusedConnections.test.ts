import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { withBackupConnection } from '../../../db/backups/backupConnection.ts';
import { isRefused } from '../../../db/core/constraints.ts';
import { openDatabase } from '../../../db/core/knex.ts';
import { Job } from '../../../db/models/Job.ts';
import { driverErrorOf } from '../../../domain/shared/driverError.ts';
import { isClientRefused, isOutage } from '../../../domain/shared/outage.ts';
import { createLog } from '../../../platform/log.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase({ empty: true });
});
afterAll(() => database.drop());

/** The URL of the database with a change. */
function changed(change: (url: URL) => void): string {
  const url = new URL(database.url);
  change(url);
  return url.href;
}

const changes: [string, string | undefined, (url: URL) => void][] = [
  ['the password is wrong', '28P01', (url) => (url.password = 'wrong')],
  ['the database does not exist', '3D000', (url) => (url.pathname = '/nowhere')],
  ['the server has no TLS', undefined, (url) => url.searchParams.set('sslmode', 'verify-full')],
];

test.each(changes)(
  'it is an outage for every user of connections when %s',
  async (_, code, change) => {
    const url = changed(change);
    const log = createLog('silent', false);
    const db = openDatabase({ url, poolSize: 1, statementTimeoutMs: 0, log });
    const uses: (() => Promise<unknown>)[] = [
      () => db.raw('SELECT 1'),
      () => db.transaction((trx) => trx.raw('SELECT 1')),
      () => Job.query(db).findById('job_1').execute(),
      () => withBackupConnection(url, AbortSignal.timeout(60_000), () => Promise.resolve()),
    ];
    for (const use of uses) {
      const error = await use().then(
        () => undefined,
        (reason: unknown) => reason,
      );
      expect(driverErrorOf(error).code).toBe(code);
      expect([isOutage(error), isClientRefused(error), isRefused(error)]).toEqual([
        true,
        true,
        false,
      ]);
    }
    await db.destroy();
  },
);

test('an error of a statement is none of its connection', async () => {
  const log = createLog('silent', false);
  const db = openDatabase({ url: database.url, poolSize: 1, statementTimeoutMs: 0, log });
  const error: unknown = await db.raw('SELECT * FROM nowhere').catch((reason: unknown) => reason);
  expect([isOutage(error), isRefused(error)]).toEqual([false, true]);
  await db.destroy();
});
