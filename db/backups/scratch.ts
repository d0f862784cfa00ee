import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { finished } from 'node:stream/promises';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import {
  ArchiveError,
  type ArchivedTable,
  type ArchiveHeader,
  type ArchiveManifest,
  type ArchivePart,
} from '../../platform/archive/index.ts';
import type { Knex } from '../core/knex.ts';
import { MIGRATIONS } from '../migrations/index.ts';
import { columnsOf, quoted, tablesOf } from './catalog.ts';
import { askOf, copyOut, JSON_LINES } from './snapshot.ts';
import type { Session } from './session.ts';

/** A schema beside the records, into which an archive is loaded; `id` is that of the job. */
export const scratchOf = (id: string): string => `scratch_${id}`;
export const SCRATCH_PATTERN = 'scratch\\_%';

/** Migrations by name, in their order; tests bring their own. */
export type Migrations = Readonly<Record<string, Knex.Migration>>;

export class SchemaNewer extends Error {}
export class ScratchBusy extends Error {}

/** Lines of JSON that are gathered before they are made rows. */
const LINES_BYTES = 64 << 20;
const NEWLINE = 10;

/** The migrations that an archive has behind it, and those that it needs. Error: `SchemaNewer`. */
function migrationsFor(
  version: string,
  migrations: Migrations,
): { done: string[]; todo: string[] } {
  const names = Object.keys(migrations);
  const at = names.indexOf(version);
  if (at === -1)
    throw new SchemaNewer(
      `The archive is of schema ${version}, which this version of Holdfast does not know.`,
    );
  return { done: names.slice(0, at + 1), todo: names.slice(at + 1) };
}

/** True when an archive can be read by this version. */
export const knowsSchema = (version: string, migrations: Migrations = MIGRATIONS): boolean =>
  version in migrations;

/** Runs migrations in a schema of their own; what they name is found there first. */
export async function migrateIn(
  db: Knex,
  schema: string,
  names: readonly string[],
  migrations: Migrations,
): Promise<void> {
  if (names.length === 0) return;
  await db.transaction(async (trx) => {
    await trx.raw('SET LOCAL statement_timeout = 0');
    await trx.raw('SET LOCAL search_path TO ??, public', [schema]);
    for (const name of names) await migrations[name]?.up(trx);
  });
}

/** Takes away what would check or follow rows while they are loaded, and the rows with which a schema begins. */
const LIBERATE = `
  DO $$
  DECLARE found record;
  BEGIN
    FOR found IN SELECT conrelid::regclass AS of_table, conname FROM pg_constraint WHERE contype = 'f' AND connamespace = current_schema()::regnamespace LOOP
      EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', found.of_table, found.conname);
    END LOOP;
    FOR found IN SELECT oid::regclass AS of_table FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace LOOP
      EXECUTE format('ALTER TABLE %s DISABLE TRIGGER USER', found.of_table);
      EXECUTE format('DELETE FROM %s', found.of_table);
    END LOOP;
  END $$`;

/** Nothing of a header is authentic before the first frame has opened with it: its names must be those of the schema. */
async function mustHave(session: Session, schema: string, header: ArchiveHeader): Promise<void> {
  for (const { name, columns } of header.tables) {
    const known = new Set(
      (await columnsOf(askOf(session), schema, name)).map((column) => column.name),
    );
    if (columns.length === 0 || columns.some((column) => !known.has(column)))
      throw new ArchiveError(
        'archive_damaged',
        `The archive is damaged: its header does not fit the schema ${header.schemaVersion}.`,
      );
  }
}

/** Tables as they were when the archive was made. */
async function createTables(
  db: Knex,
  session: Session,
  schema: string,
  header: ArchiveHeader,
  migrations: Migrations,
): Promise<string[]> {
  const { done, todo } = migrationsFor(header.schemaVersion, migrations);
  if (todo.length > 0) {
    await migrateIn(db, schema, done, migrations);
    await db.transaction(async (trx) => {
      await trx.raw('SET LOCAL search_path TO ??, public', [schema]);
      await trx.raw(LIBERATE);
    });
    await mustHave(session, schema, header);
  } else {
    // Neither indexes nor rules nor a log that survives a crash: it is compared with, once.
    await mustHave(session, 'public', header);
    for (const { name, columns } of header.tables) {
      await session.query(
        `CREATE UNLOGGED TABLE ${quoted(schema)}.${quoted(name)} AS SELECT ${columns.map(quoted).join(', ')} FROM public.${quoted(name)} WITH NO DATA`,
      );
    }
  }
  return todo;
}

type Copy = {
  table: number;
  bytes: number;
  write(bytes: Buffer): Promise<void>;
  end(): Promise<void>;
};

function openCopy(session: Session, table: number, sql: string, after: () => Promise<void>): Copy {
  const stream = session.query(copyFrom(sql));
  const done = finished(stream);
  // Its failure is met by the next write, or the end.
  done.catch(() => undefined);
  return {
    table,
    bytes: 0,
    async write(bytes) {
      this.bytes += bytes.length;
      if (!stream.write(bytes)) await Promise.race([once(stream, 'drain'), done]);
    },
    async end() {
      stream.end();
      await done;
      await after();
    },
  };
}

/** JSON null in a column that must have a value is the value null of JSON. */
async function fromLines(
  session: Session,
  schema: string,
  { name, columns }: ArchivedTable,
): Promise<void> {
  const target = `${quoted(schema)}.${quoted(name)}`;
  const types = new Map(
    (await columnsOf(askOf(session), 'public', name)).map((column) => [column.name, column]),
  );
  const value = (column: string) => {
    const known = types.get(column);
    return known?.notNull && known.type.startsWith('json')
      ? `coalesce(r.${quoted(column)}, 'null')`
      : `r.${quoted(column)}`;
  };
  await session.query(
    `INSERT INTO ${target} (${columns.map(quoted).join(', ')}) SELECT ${columns.map(value).join(', ')}
     FROM ${quoted(schema)}._lines AS l, json_populate_record(NULL::${target}, l.line::json) AS r`,
  );
  await session.query(`TRUNCATE ${quoted(schema)}._lines`);
}

/** Opens the way for the rows of one table. */
function copyInto(
  session: Session,
  schema: string,
  { engine, tables }: ArchiveHeader,
  index: number,
): Copy {
  const table = tables[index];
  if (!table)
    throw new ArchiveError(
      'archive_damaged',
      'The archive is damaged: it has rows of a table that it does not name.',
    );
  if (engine === 'portable')
    return openCopy(session, index, `COPY ${quoted(schema)}._lines FROM STDIN ${JSON_LINES}`, () =>
      fromLines(session, schema, table),
    );
  const target = `${quoted(schema)}.${quoted(table.name)} (${table.columns.map(quoted).join(', ')})`;
  return openCopy(session, index, `COPY ${target} FROM STDIN`, () => Promise.resolve());
}

export type Loading = {
  db: Knex;
  session: Session;
  schema: string;
  migrations?: Migrations;
  onRows?: (bytes: number) => void;
};

/** An archive in its schema: as it was made; `todo` are the migrations that are newer. */
export type Loaded = { header: ArchiveHeader; manifest: ArchiveManifest; todo: string[] };

/**
 * Loads an archive into a schema of its own, anew. Whatever is wrong with the archive is found here; the records are not
 * touched. Errors: `ArchiveError`, `SchemaNewer`, and of the database when rows do not fit.
 */
export async function loadArchive(
  parts: AsyncIterable<ArchivePart>,
  { db, session, schema, migrations = MIGRATIONS, onRows }: Loading,
): Promise<Loaded> {
  let loaded: Omit<Loaded, 'manifest'> | undefined;
  let manifest: ArchiveManifest | undefined;
  let copy: Copy | undefined;
  await holdScratch(session, schema);
  for await (const part of parts) {
    if (part.kind === 'header') {
      migrationsFor(part.header.schemaVersion, migrations);
      await session.query(
        `DROP SCHEMA IF EXISTS ${quoted(schema)} CASCADE; CREATE SCHEMA ${quoted(schema)}`,
      );
      loaded = {
        header: part.header,
        todo: await createTables(db, session, schema, part.header, migrations),
      };
      await session.query(`CREATE UNLOGGED TABLE ${quoted(schema)}._lines (line text)`);
    } else if (part.kind === 'rows' && loaded) {
      let { bytes } = part;
      if (
        copy &&
        (copy.table !== part.table ||
          (loaded.header.engine === 'portable' && copy.bytes > LINES_BYTES))
      ) {
        // Lines are taken over in batches, so that whoever sends them does not wait long; a batch ends with a line.
        const end: number = copy.table === part.table ? bytes.lastIndexOf(NEWLINE) + 1 : 0;
        if (end > 0) await copy.write(bytes.subarray(0, end));
        bytes = bytes.subarray(end);
        if (copy.table !== part.table || end > 0) {
          await copy.end();
          copy = undefined;
        }
      }
      copy ??= copyInto(session, schema, loaded.header, part.table);
      await copy.write(bytes);
      onRows?.(part.bytes.length);
    } else if (part.kind === 'manifest') ({ manifest } = part);
  }
  await copy?.end();
  if (!loaded || !manifest)
    throw new ArchiveError('archive_cut_off', 'The archive ends too early.');
  for (const { name, rows } of manifest.tables) {
    const {
      rows: [found],
    } = await session.query<{ n: number }>(
      `SELECT count(*) AS n FROM ${quoted(schema)}.${quoted(name)}`,
    );
    if (found?.n !== rows)
      throw new ArchiveError(
        'archive_damaged',
        `The archive has ${rows} rows of ${name}, ${found?.n ?? 0} were loaded.`,
      );
  }
  return { ...loaded, manifest };
}

/** Two that load into one schema would spoil it for each other: one that was taken for dead may still be at it. */
async function holdScratch(session: Session, schema: string): Promise<void> {
  const {
    rows: [held],
  } = await session.query<{ held: boolean }>(
    'SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS held',
    [schema],
  );
  if (!held?.held) throw new ScratchBusy('Another attempt is still loading the archive');
}

/**
 * Brings what was loaded up to the schema of now, and counts it: tables without a log are empty after a crash of the server,
 * and must not be taken for the archive.
 */
export async function bringUp(
  { db, session, schema, migrations = MIGRATIONS }: Loading,
  { header, todo }: Loaded,
): Promise<void> {
  await migrateIn(db, schema, todo, migrations);
  await session.query(
    `CREATE TABLE ${quoted(schema)}._loaded (name text PRIMARY KEY, rows bigint NOT NULL)`,
  );
  for (const { name } of tablesOf(header.tables.map(({ section }) => section))) {
    // One that came later than the archive is there after its migration.
    const {
      rows: [there],
    } = await session.query<{ there: boolean }>('SELECT to_regclass($1) IS NOT NULL AS there', [
      `${quoted(schema)}.${quoted(name)}`,
    ]);
    if (!there?.there) continue;
    await session.query(`ANALYZE ${quoted(schema)}.${quoted(name)}`);
    await session.query(
      `INSERT INTO ${quoted(schema)}._loaded SELECT $1, count(*) FROM ${quoted(schema)}.${quoted(name)}`,
      [name],
    );
  }
}

/** Reads back what was loaded, as it lies in the archive: the tables that differ from its manifest. */
export async function findUnequal(
  { session, schema }: Loading,
  { header, manifest }: Loaded,
): Promise<string[]> {
  const unequal: string[] = [];
  for (const [at, { name, columns }] of header.tables.entries()) {
    const hash = createHash('sha256');
    const rows = `SELECT ${columns.map(quoted).join(', ')} FROM ${quoted(schema)}.${quoted(name)}`;
    for await (const bytes of session.query(
      copyTo(copyOut(rows, header.engine)),
    ) as AsyncIterable<Buffer>)
      hash.update(bytes);
    if (hash.digest('hex') !== manifest.tables[at]?.sha256) unequal.push(name);
  }
  return unequal;
}

export const dropScratch = async (db: Knex, schema: string): Promise<void> => {
  await db.transaction(async (trx) => {
    await trx.raw(`SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '30s'`);
    await trx.raw('DROP SCHEMA IF EXISTS ?? CASCADE', [schema]);
  });
};

/** Scratch schemas that are there, by the ids of their jobs. */
export async function scratchJobs(db: Knex): Promise<string[]> {
  const { rows } = await db.raw<{ rows: { id: string }[] }>(
    `SELECT substr(nspname, 9) AS id FROM pg_namespace WHERE nspname LIKE ?`,
    [SCRATCH_PATTERN],
  );
  return rows.map(({ id }) => id);
}
