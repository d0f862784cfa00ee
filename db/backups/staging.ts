import {
  ArchiveError,
  type ArchiveHeader,
  type ArchiveManifest,
} from '../../platform/archive/index.ts';
import { lockKeySql } from '../core/advisoryLocks.ts';
import { isLockTimeout } from '../core/constraints.ts';
import type { Knex } from '../core/knex.ts';
import { unknownMigrations } from '../core/migrate.ts';
import type { Migrations } from '../core/migration.ts';
import { MIGRATIONS } from '../migrations/index.ts';
import type { BackupConnection } from './backupConnection.ts';
import type { BulkLoad } from './loadBulk.ts';
import { quoteIdentifier, readColumns, tablesOf, type RunQuery } from './catalog.ts';
import type { RestorePlan } from './restorePlan.ts';
import {
  columnList,
  countRows,
  liveTable,
  queryOn,
  rowCountsSql,
  runAll,
  stagedTable,
} from './sql.ts';
import type { BackedUpTable } from './tables.ts';

const STAGING_PREFIX = 'staging_';

/** The schema into which an archive is loaded for a job. */
export const stagingSchema = (jobId: string): string => `${STAGING_PREFIX}${jobId}`;

/** The archive has a schema version that this version of Holdfast does not know. */
export class ArchiveTooNew extends Error {}

/** Another attempt is loading an archive into the same staging schema. */
export class StagingBusy extends Error {}

/** An archive in its staging schema. `pendingMigrations` are newer than the archive. */
export type LoadedArchive = {
  header: ArchiveHeader;
  manifest: ArchiveManifest;
  pendingMigrations: string[];
};

/**
 * Where an archive is loaded, and the migrations of this version of Holdfast. With `bulk`, archives
 * that need no migration are loaded by several connections.
 */
export type Staging = {
  db: Knex;
  connection: BackupConnection;
  schema: string;
  migrations: Migrations;
  bulk?: BulkLoad;
};

/**
 * True when archives of a schema version can be read: this version of Holdfast knows it, or the database
 * has had it, since a newer version has migrated it.
 */
export const isKnownSchema = async (
  db: Knex,
  version: string,
  migrations: Migrations = MIGRATIONS,
): Promise<boolean> => version in migrations || (await unknownMigrations(db)).includes(version);

/** The migrations that an archive has, and those that it needs. Error: `ArchiveTooNew`. */
async function migrationsFor(
  version: string,
  { db, migrations }: Staging,
): Promise<{ applied: string[]; pending: string[] }> {
  if (!(await isKnownSchema(db, version, migrations)))
    throw new ArchiveTooNew(
      `The archive has the schema version ${version}, which this Holdfast does not know.`,
    );
  const names = Object.keys(migrations);
  const count = names.indexOf(version) + 1 || names.length;
  return { applied: names.slice(0, count), pending: names.slice(count) };
}

/** Runs migrations in a schema: names without a schema refer to it first, then to `public`. */
async function runMigrations(
  { db, schema, migrations }: Staging,
  names: readonly string[],
): Promise<void> {
  if (names.length === 0) return;
  await db.transaction(async (trx) => {
    await trx.raw('SET LOCAL statement_timeout = 0');
    await trx.raw('SET LOCAL search_path TO ??, public', [schema]);
    for (const name of names) await migrations[name]?.up(trx);
  });
}

/** Drops foreign keys, disables triggers and deletes the rows that migrations have inserted. */
const DROP_CONSTRAINTS = `
  DO $$
  DECLARE found record;
  BEGIN
    FOR found IN
      SELECT conrelid::regclass AS of_table, conname FROM pg_constraint
      WHERE contype = 'f' AND connamespace = current_schema()::regnamespace
    LOOP
      EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', found.of_table, found.conname);
    END LOOP;
    FOR found IN
      SELECT oid::regclass AS of_table FROM pg_class
      WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
    LOOP
      EXECUTE format('ALTER TABLE %s DISABLE TRIGGER USER', found.of_table);
      EXECUTE format('DELETE FROM %s', found.of_table);
    END LOOP;
  END $$`;

/** True when a schema has the tables and columns of a header. */
async function hasColumns(
  connection: BackupConnection,
  schema: string,
  { tables }: ArchiveHeader,
): Promise<boolean> {
  const existing = await readColumns(queryOn(connection), schema);
  return tables.every(({ name, columns }) => {
    const known = new Set(existing.get(name)?.map((column) => column.name));
    return columns.length > 0 && columns.every((column) => known.has(column));
  });
}

/** How the tables of an archive were made: by migrations, of which `pending` are newer than the archive. */
export type CreatedStaging = { pending: string[]; byMigrations: boolean };

/**
 * Creates an empty staging schema with the tables of an archive, as they were when the archive was
 * made. The header is not authenticated before the first frame is decrypted, so that its names must not be
 * used unchecked. Errors: `ArchiveTooNew`, `ArchiveError`.
 */
export async function createStaging(
  staging: Staging,
  header: ArchiveHeader,
): Promise<CreatedStaging> {
  const { db, connection, schema } = staging;
  if (header.auditSegment)
    throw new ArchiveError('not_an_archive', 'This is a part of the audit log, not a backup.');
  const { applied, pending } = await migrationsFor(header.schemaVersion, staging);
  const quoted = quoteIdentifier(schema);
  await connection.query(`DROP SCHEMA IF EXISTS ${quoted} CASCADE; CREATE SCHEMA ${quoted}`);
  // A newer version may have removed columns that this one does not use any more.
  const byMigrations = pending.length > 0 || !(await hasColumns(connection, 'public', header));
  if (byMigrations) {
    await runMigrations(staging, applied);
    await db.transaction(async (trx) => {
      await trx.raw('SET LOCAL search_path TO ??, public', [schema]);
      await trx.raw(DROP_CONSTRAINTS);
    });
    if (!(await hasColumns(connection, schema, header)))
      throw new ArchiveError(
        'archive_damaged',
        `The archive is damaged: its header does not match the schema ${header.schemaVersion}.`,
      );
  } else {
    // The tables are compared once and then dropped: they need no indexes, constraints or WAL.
    const creations = header.tables.map(({ name, columns }) => {
      const table = quoteIdentifier(name);
      return `CREATE UNLOGGED TABLE ${quoted}.${table} AS
        SELECT ${columnList(columns)} FROM public.${table} WITH NO DATA`;
    });
    await runAll(queryOn(connection), creations);
  }
  return { pending, byMigrations };
}

/**
 * Adds the tables and columns that the current ones of the sections have and the archive has not: a
 * process of another version may have made the archive, or have migrated the database since. The tables are
 * empty, and the columns have their defaults.
 */
async function completeStaging(
  { connection, schema }: Staging,
  header: ArchiveHeader,
): Promise<void> {
  const query = queryOn(connection);
  const [current, staged] = [await readColumns(query, 'public'), await readColumns(query, schema)];
  const tables = tablesOf(header.tables.map(({ section }) => section));
  const isMissing = ({ name }: BackedUpTable) => current.has(name) && !staged.has(name);
  await runAll(
    query,
    tables.filter(isMissing).map(
      (table) =>
        `CREATE UNLOGGED TABLE ${stagedTable(schema, table)}
           (LIKE ${liveTable(table)} INCLUDING DEFAULTS)`,
    ),
  );
  const missing = await query<{ sql: string }>(
    `SELECT format('ALTER TABLE %I.%I ADD COLUMN %I %s', $1::text, c.relname, a.attname,
       concat_ws(' ', format_type(a.atttypid, a.atttypmod),
         'COLLATE ' || nullif(a.attcollation, t.typcollation)::regcollation,
         'DEFAULT ' || pg_get_expr(d.adbin, d.adrelid))) AS sql
     FROM pg_attribute AS a
       JOIN pg_type AS t ON t.oid = a.atttypid
       JOIN pg_class AS c ON c.oid = a.attrelid
       JOIN pg_class AS s ON s.relname = c.relname AND s.relnamespace = $1::regnamespace
       LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
     WHERE c.relnamespace = 'public'::regnamespace AND c.relname::text = ANY ($2)
       AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
       AND NOT EXISTS (SELECT FROM pg_attribute AS o WHERE o.attrelid = s.oid AND o.attname = a.attname)
     ORDER BY c.relname, a.attnum`,
    [schema, tables.map(({ name }) => name)],
  );
  await runAll(
    query,
    missing.map(({ sql }) => sql),
  );
}

/** The server notices within two seconds that a killed process has lost its connection. */
const LOCK_TIMEOUT = '5s';

/**
 * Locks a staging schema for this connection. Error: `StagingBusy` when another attempt, which may
 * have been considered dead, keeps the lock.
 */
export async function lockStaging(connection: BackupConnection, schema: string): Promise<void> {
  const query = queryOn(connection);
  await query(`SET lock_timeout = '${LOCK_TIMEOUT}'`);
  try {
    await query(`SELECT pg_advisory_lock(${lockKeySql('staging', '$1')})`, [schema]);
  } catch (error) {
    throw isLockTimeout(error)
      ? new StagingBusy('Another attempt is still loading the archive')
      : error;
  }
  await query('RESET lock_timeout');
}

/**
 * Migrates a loaded archive to the current schema, counts its rows and stores its header. The
 * counts show later whether the unlogged tables survived: they are empty after a crash of the
 * server.
 */
export async function migrateToCurrent(
  staging: Staging,
  { header, pendingMigrations }: LoadedArchive,
): Promise<void> {
  const { connection, schema } = staging;
  await runMigrations(staging, pendingMigrations);
  await completeStaging(staging, header);
  const query = queryOn(connection);
  const quoted = quoteIdentifier(schema);
  await query(`CREATE TABLE ${quoted}._row_counts (name text PRIMARY KEY, rows bigint NOT NULL)`);
  const staged = new Map(
    tablesOf(header.tables.map(({ section }) => section)).map((table) => [
      table.name,
      stagedTable(schema, table),
    ]),
  );
  if (staged.size > 0) {
    await query(`ANALYZE ${[...staged.values()].join(', ')}`);
    await query(`INSERT INTO ${quoted}._row_counts ${rowCountsSql(staged)}`);
  }
  await query(`CREATE TABLE ${quoted}._header (header json NOT NULL)`);
  await query(`INSERT INTO ${quoted}._header VALUES ($1)`, [JSON.stringify(header)]);
}

/** The header of the archive in a staging schema, or undefined when there is none. */
export async function readStagedHeader(
  query: RunQuery,
  schema: string,
): Promise<ArchiveHeader | undefined> {
  const [row] = await query<{ header: ArchiveHeader }>(
    `SELECT header FROM ${quoteIdentifier(schema)}._header`,
  );
  return row?.header;
}

/** True when all rows that were loaded still exist: unlogged tables do not survive a crash. */
export async function isComplete(
  query: RunQuery,
  { schema, tables }: RestorePlan,
): Promise<boolean> {
  const loaded = await readRowCounts(query, schema);
  const staged = tables.map(({ table }) => [table.name, stagedTable(schema, table)] as const);
  const present = await countRows(query, new Map(staged));
  return staged.every(([name]) => present.get(name) === loaded.get(name));
}

/** The number of rows of each table that was loaded. */
export async function readRowCounts(
  query: RunQuery,
  schema: string,
): Promise<ReadonlyMap<string, number>> {
  const counts = await query<{ name: string; rows: number }>(
    `SELECT name, rows FROM ${quoteIdentifier(schema)}._row_counts`,
  );
  return new Map(counts.map(({ name, rows }) => [name, rows]));
}

export const dropStaging = async (db: Knex, schema: string): Promise<void> => {
  await db.transaction(async (trx) => {
    await trx.raw(`SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '30s'`);
    await trx.raw('DROP SCHEMA IF EXISTS ?? CASCADE', [schema]);
  });
};

/** Drops a staging schema, unless another attempt is using it: that one drops it. */
export const dropUnusedStaging = (db: Knex, schema: string): Promise<void> =>
  db
    .transaction(async (trx) => {
      await trx.raw(`SET LOCAL lock_timeout = '${LOCK_TIMEOUT}'`);
      await trx.raw(`SELECT pg_advisory_xact_lock(${lockKeySql('staging', '?')})`, [schema]);
      await dropStaging(trx, schema);
    })
    .catch((error: unknown) => {
      if (!isLockTimeout(error)) throw error;
    });

/** The ids of all jobs that have a staging schema. */
export async function findStagedJobs(db: Knex): Promise<string[]> {
  const { rows } = await db.raw<{ rows: { id: string }[] }>(
    `SELECT substr(nspname, ?) AS id FROM pg_namespace WHERE starts_with(nspname, ?)`,
    [STAGING_PREFIX.length + 1, STAGING_PREFIX],
  );
  return rows.map(({ id }) => id);
}
