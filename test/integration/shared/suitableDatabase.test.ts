import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openDatabase, type Knex } from '../../../db/core/knex.ts';
import { migrateUp, pendingMigrations } from '../../../db/core/migrate.ts';
import { MIGRATIONS } from '../../../db/migrations/index.ts';
import { createLog, type Log } from '../../../platform/log.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
let role: string;
/** As the superuser, and as a role that does not own the database. */
let owner: Knex;
let db: Knex;

const open = (url: string) =>
  openDatabase({ url, poolSize: 3, statementTimeoutMs: 0, log: createLog('silent', false) });

/** The URL of the database for the role, and the name of the database. */
function urlOfRole(): string {
  const url = new URL(database.url);
  [url.username, url.password] = [role, 'secret'];
  return url.href;
}
const databaseName = () => new URL(database.url).pathname.slice(1);

const grant = () => owner.raw(`GRANT CREATE, TEMPORARY ON DATABASE ${databaseName()} TO ${role}`);

beforeEach(async () => {
  database = await createDatabase({ empty: true });
  role = `role_${randomBytes(6).toString('hex')}`;
  owner = open(database.url);
  await owner.raw(`CREATE ROLE ${role} LOGIN PASSWORD 'secret'`);
  await owner.raw(`GRANT CREATE, USAGE ON SCHEMA public TO ${role}`);
  db = open(urlOfRole());
});
afterEach(async () => {
  await db.destroy();
  await owner.raw(`DROP OWNED BY ${role}`);
  await owner.raw(`DROP ROLE ${role}`);
  await owner.destroy();
  await database.drop();
});

test('a role that is not the owner can migrate with the grants of the guide, and is refused without', async () => {
  await expect(migrateUp(db)).rejects.toThrow(
    /GRANT CREATE, TEMPORARY ON DATABASE test_\w+ TO role_/,
  );
  expect(await pendingMigrations(db)).toEqual(Object.keys(MIGRATIONS));
  await grant();
  expect(await migrateUp(db)).toEqual(Object.keys(MIGRATIONS));
});

test('a new installation whose tables would be outside of public is refused', async () => {
  await grant();
  await db.raw('CREATE SCHEMA app');
  await owner.raw(`ALTER ROLE ${role} IN DATABASE ${databaseName()} SET search_path = app, public`);
  const elsewhere = open(urlOfRole());
  await expect(migrateUp(elsewhere)).rejects.toThrow('search_path is app; Holdfast needs');
  await elsewhere.destroy();
});

test('an existing installation is warned, and goes on', async () => {
  await grant();
  const first = Object.fromEntries(Object.entries(MIGRATIONS).slice(0, 1));
  const firstTwo = Object.fromEntries(Object.entries(MIGRATIONS).slice(0, 2));
  const warnings: unknown[] = [];
  const log = {
    info: () => undefined,
    warn: (fields: object) => warnings.push(fields),
  } as unknown as Log;
  await migrateUp(db, { migrations: first, log });
  expect(warnings).toEqual([]);
  await owner.raw(`REVOKE CREATE ON DATABASE ${databaseName()} FROM ${role}`);
  expect(await migrateUp(db, { migrations: firstTwo, log })).toHaveLength(1);
  expect(warnings).toEqual([{ deficit: expect.stringContaining('GRANT CREATE, TEMPORARY') }]);
});
