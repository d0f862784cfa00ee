import type { Knex } from 'knex';
import { lockUntilCommit } from './advisoryLocks.ts';
import { MIGRATIONS } from '../migrations/index.ts';

/** How Knex runs the migrations. */
export const MIGRATION_SETTINGS = {
  tableName: 'schema_migrations',
  // Knex's own lock is a row that a killed process leaves behind. An advisory lock ends with its
  // connection.
  disableMigrationsLocking: true,
  migrationSource: {
    getMigrations: () => Promise.resolve(Object.keys(MIGRATIONS)),
    getMigrationName: (name: string) => name,
    getMigration: (name: string) => {
      const migration = MIGRATIONS[name];
      return migration
        ? Promise.resolve(migration)
        : Promise.reject(new Error(`Unknown migration ${name}`));
    },
  },
} satisfies Knex.MigratorConfig & { disableMigrationsLocking: boolean };

async function withMigrationLock<T>(db: Knex, work: () => Promise<T>): Promise<T> {
  return db.transaction(async (lock) => {
    await lock.raw('SET LOCAL idle_in_transaction_session_timeout = 0');
    await lock.raw('SET LOCAL statement_timeout = 0');
    await lockUntilCommit(lock, 'migration');
    return work();
  });
}

/** Runs pending migrations, in one process at a time. Returns their names. */
export async function migrateUp(db: Knex): Promise<string[]> {
  if ((await pendingMigrations(db)).length === 0) return [];
  return withMigrationLock(db, async () => {
    const [, names] = (await db.migrate.latest(MIGRATION_SETTINGS)) as [number, string[]];
    return names;
  });
}

/** Reverts the newest migration, or all of them. Returns their names. */
export async function migrateDown(db: Knex, all = false): Promise<string[]> {
  return withMigrationLock(db, async () => {
    const [, names] = (await (all
      ? db.migrate.rollback(MIGRATION_SETTINGS, true)
      : db.migrate.down(MIGRATION_SETTINGS))) as [number, string[]];
    return names;
  });
}

/** Names of the migrations that the database has not run yet. */
export async function pendingMigrations(db: Knex): Promise<string[]> {
  const known = Object.keys(MIGRATIONS);
  const table = await db.raw<{ rows: { found: string | null }[] }>(
    `SELECT to_regclass('schema_migrations') AS found`,
  );
  if (!table.rows[0]?.found) return known;
  const done = new Set<string>(await db('schema_migrations').pluck('name'));
  return known.filter((name) => !done.has(name));
}
