import type { Log } from '../../platform/log.ts';
import { MIGRATIONS } from '../migrations/index.ts';
import type { Knex } from './knex.ts';
import { describeBlockers, withShortLockWaits } from './lockWaits.ts';
import type { Migration, Migrations } from './migration.ts';
import { withMigrationLock } from './migrationLock.ts';

/** The schema has migrations that this version of Holdfast does not know. */
export class SchemaUnknown extends Error {}

/** The server or the database is not one that Holdfast can use. */
export class DatabaseUnsuitable extends Error {}

export type MigrateOptions = {
  log?: Log;
  /** How long to wait in all, for locks of tables and for another process that migrates. */
  waitMs?: number;
  migrations?: Migrations;
};

const DEFAULT_WAIT_MS = 600_000;

type Run = { db: Knex; log: Log | undefined; deadline: number; migrations: Migrations };

/** Fills the defaults in, and runs `work` as the only process that migrates. */
function exclusively<T>(
  db: Knex,
  { log, waitMs = DEFAULT_WAIT_MS, migrations = MIGRATIONS }: MigrateOptions,
  work: (run: Run) => Promise<T>,
): Promise<T> {
  const deadline = Date.now() + waitMs;
  const onWait = () => log?.info('another process migrates the schema; waiting for it');
  return withMigrationLock(db, { deadline, onWait }, () => work({ db, log, deadline, migrations }));
}

type Step = 'up' | 'down';

const runsInTransaction = ({ config }: Migration): boolean => config?.transaction !== false;

/** Runs or reverts one migration, and records it with its contract step. */
async function runMigration(run: Run, name: string, step: Step): Promise<void> {
  const { db, log, deadline, migrations } = run;
  const migration = migrations[name];
  if (!migration) throw new SchemaUnknown(`This version does not know the migration ${name}.`);
  const startedAt = performance.now();
  log?.info({ migration: name, step }, 'migration started');
  const work = async (executor: Knex) => {
    if (step === 'up') await migration.up(executor);
    await RECORD[step](executor, name, migration);
    if (step === 'down') await migration.down(executor);
  };
  if (!runsInTransaction(migration)) await work(db);
  else
    await withShortLockWaits(
      db,
      {
        deadline,
        onBlocked: (blockers, pauseMs) =>
          log?.warn(
            { migration: name, pauseMs, blockers: describeBlockers(blockers) },
            'the migration waits for a lock; requests go on',
          ),
      },
      work,
    );
  log?.info({ migration: name, step, ms: Math.round(performance.now() - startedAt) }, 'done');
}

/** Records that a migration was run or reverted; older processes read contract steps (`schemaFit.ts`). */
const RECORD = {
  async up(executor: Knex, name: string, { contract }: Migration) {
    await executor.raw(
      `INSERT INTO schema_migrations (name, batch, migration_time)
       SELECT ?, coalesce(max(batch), 0) + 1, now() FROM schema_migrations`,
      [name],
    );
    if (contract)
      await executor('schema_contracts')
        .insert({ name, ...contract })
        .onConflict('name')
        .merge();
  },
  async down(executor: Knex, name: string, { contract }: Migration) {
    if (contract) await executor('schema_contracts').where({ name }).delete();
    await executor('schema_migrations').where({ name }).delete();
  },
};

/** As the migrator of Knex has made it, which versions up to 0.2.0 use. */
const CREATE_TABLE = `
  CREATE TABLE IF NOT EXISTS schema_migrations (
    id serial PRIMARY KEY,
    name varchar(255),
    batch integer,
    migration_time timestamptz
  )`;

const OLDEST_SERVER = 15;

/**
 * Checks, before the first migration, what cannot be changed later. Error: `DatabaseUnsuitable`.
 */
async function assertSuitable(db: Knex): Promise<void> {
  const { rows } = await db.raw<{ rows: { version: string; major: number; encoding: string }[] }>(
    `SELECT current_setting('server_version') AS version,
            current_setting('server_version_num')::integer / 10000 AS major,
            current_setting('server_encoding') AS encoding`,
  );
  const { version = '', major = 0, encoding = '' } = rows[0] ?? {};
  if (major < OLDEST_SERVER)
    throw new DatabaseUnsuitable(
      `Holdfast needs PostgreSQL ${OLDEST_SERVER} or newer; this is ${version}.`,
    );
  if (encoding !== 'UTF8')
    throw new DatabaseUnsuitable(
      `The database has the encoding ${encoding}; Holdfast needs UTF8. ` +
        "Create it with TEMPLATE template0 ENCODING 'UTF8'.",
    );
  const deficit = await findDeficit(db);
  if (deficit !== undefined) throw new DatabaseUnsuitable(deficit);
}

/**
 * What backups and restores will lack in this database, as a sentence; undefined: nothing. They read the tables of
 * `public`, load archives into a schema of their own, and compare rows by temporary tables.
 */
async function findDeficit(db: Knex): Promise<string | undefined> {
  const { rows } = await db.raw<{
    rows: { schema: string | null; mayCreate: boolean; grant: string }[];
  }>(
    `SELECT current_schema() AS schema,
            has_database_privilege(current_database(), 'CREATE')
              AND has_database_privilege(current_database(), 'TEMPORARY') AS "mayCreate",
            format('GRANT CREATE, TEMPORARY ON DATABASE %I TO %I', current_database(), current_user) AS grant`,
  );
  const { schema = null, mayCreate = true, grant = '' } = rows[0] ?? {};
  if (schema !== 'public')
    return (
      `The first schema of the search_path is ${schema ?? 'missing'}; Holdfast needs its tables in public, ` +
      'and the right to create them there.'
    );
  return mayCreate
    ? undefined
    : `The role may not create schemas and temporary tables in the database, which restores need: ${grant}.`;
}

/** An installation that works goes on to work: what a restore will lack can be granted later. */
async function warnOfDeficit({ db, log }: Run): Promise<void> {
  const deficit = await findDeficit(db);
  if (deficit !== undefined) log?.warn({ deficit }, 'backups or restores will fail');
}

/**
 * Runs pending migrations, each in a transaction of its own, in one process at a time. Returns their
 * names. Errors: `DatabaseUnsuitable`, `MigrationBlocked`, `SchemaUnknown`; those of PostgreSQL.
 * Migrations that ran before the error stay.
 */
export async function migrateUp(db: Knex, options: MigrateOptions = {}): Promise<string[]> {
  if ((await pendingMigrations(db, options.migrations)).length === 0) return [];
  return exclusively(db, options, async (run) => {
    const pending = await pendingMigrations(db, run.migrations);
    if (pending.length === 0) return [];
    if (pending.length === Object.keys(run.migrations).length) await assertSuitable(db);
    else await warnOfDeficit(run);
    await db.raw(CREATE_TABLE);
    await assertKnown(run);
    for (const name of pending) await runMigration(run, name, 'up');
    return pending;
  });
}

/** Reverts the newest migration, or all of them. Returns their names. Errors: those of `migrateUp`. */
export const migrateDown = (
  db: Knex,
  all = false,
  options: MigrateOptions = {},
): Promise<string[]> =>
  exclusively(db, options, async (run) => {
    await assertKnown(run);
    const names = await migrationsToRevert(db, all, run.migrations);
    for (const name of names) await runMigration(run, name, 'down');
    return names;
  });

/** The names of the migrations that `migrateDown` reverts, in this order. */
export async function migrationsToRevert(
  db: Knex,
  all: boolean,
  migrations: Migrations = MIGRATIONS,
): Promise<string[]> {
  const done = await readMigrations(db);
  const names = Object.keys(migrations)
    .filter((name) => done.has(name))
    .toReversed();
  return all ? names : names.slice(0, 1);
}

/** Names of the migrations that the database has run. */
async function readMigrations(db: Knex): Promise<Set<string>> {
  const table = await db.raw<{ rows: { found: string | null }[] }>(
    `SELECT to_regclass('schema_migrations') AS found`,
  );
  return new Set<string>(
    table.rows[0]?.found ? await db('schema_migrations').orderBy('id').pluck('name') : [],
  );
}

/** Names of the migrations that the database has not run yet. */
export async function pendingMigrations(
  db: Knex,
  migrations: Migrations = MIGRATIONS,
): Promise<string[]> {
  const done = await readMigrations(db);
  return Object.keys(migrations).filter((name) => !done.has(name));
}

/** Names of the migrations that the database has run and this version does not know. */
export async function unknownMigrations(
  db: Knex,
  migrations: Migrations = MIGRATIONS,
): Promise<string[]> {
  return [...(await readMigrations(db))].filter((name) => !(name in migrations));
}

/** Error: `SchemaUnknown`. */
export async function assertKnown({
  db,
  migrations,
}: Pick<Run, 'db' | 'migrations'>): Promise<void> {
  const unknown = await unknownMigrations(db, migrations);
  if (unknown.length === 0) return;
  throw new SchemaUnknown(
    `The schema has the migrations ${unknown.join(', ')}, which this version of Holdfast does not know. ` +
      'Migrate with the newer version.',
  );
}
