import { to as copyTo } from 'pg-copy-streams';
import {
  ArchiveError,
  type ArchiveHeader,
  type ArchiveManifest,
  type ArchivePart,
} from '../../platform/archive/index.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { createPause } from '../../platform/turns.ts';
import type { BackupConnection } from './backupConnection.ts';
import { quoteIdentifier, readColumns } from './catalog.ts';
import { archivedTable, copyIntoSql, openCopy, type Copy, type RowLoader } from './copyInto.ts';
import { createJsonRows } from './jsonRows.ts';
import { createBulkLoader } from './loadBulk.ts';
import { copyStatement } from './snapshot.ts';
import { createRowSum, type RowSum } from './rowSum.ts';
import { columnList, countRows, queryOn } from './sql.ts';
import { createStaging, lockStaging, type LoadedArchive, type Staging } from './staging.ts';
import { counted } from '../../domain/shared/counted.ts';

type OnRows = (part: Extract<ArchivePart, { kind: 'rows' }>) => Promise<void> | void;

/**
 * Loads an archive into its staging schema, which is created again. Live tables are only read.
 * `onRows` receives each piece that was loaded. Errors: `ArchiveError`,
 * `ArchiveTooNew`, `StagingBusy`, and database errors when rows do not match their columns.
 */
export async function loadArchive(
  parts: AsyncIterable<ArchivePart>,
  staging: Staging,
  onRows: OnRows = () => undefined,
): Promise<LoadedArchive> {
  const { connection, schema } = staging;
  let header: ArchiveHeader | undefined;
  let manifest: ArchiveManifest | undefined;
  let pendingMigrations: string[] = [];
  let rows: RowLoader | undefined;
  await lockStaging(connection, schema);
  for await (const part of parts) {
    if (part.kind === 'header') {
      ({ header } = part);
      const created = await createStaging(staging, header);
      pendingMigrations = created.pending;
      rows = await openLoader(staging, header, created.byMigrations);
    } else if (part.kind === 'rows') {
      await rows?.write(part.table, part.bytes);
      await onRows(part);
    } else {
      ({ manifest } = part);
    }
  }
  await rows?.end();
  if (!header || !manifest)
    throw new ArchiveError('archive_truncated', 'The archive ends too early.');
  await assertRowCounts(staging, manifest);
  return { header, manifest, pendingMigrations };
}

/** `byMigrations`: migrations have made the staging tables. */
async function openLoader(
  staging: Staging,
  header: ArchiveHeader,
  byMigrations: boolean,
): Promise<RowLoader> {
  const { connection, schema, bulk } = staging;
  const rows =
    bulk && !byMigrations
      ? createBulkLoader(bulk, schema, header)
      : createRowLoader(connection, schema, header);
  return header.engine === 'portable'
    ? createJsonLoader(rows, staging, header, byMigrations)
    : rows;
}

async function assertRowCounts(
  { connection, schema }: Staging,
  manifest: ArchiveManifest,
): Promise<void> {
  const staged = manifest.tables.map(
    ({ name }) => [name, `${quoteIdentifier(schema)}.${quoteIdentifier(name)}`] as const,
  );
  const loaded = await countRows(queryOn(connection), new Map(staged));
  for (const { name, rows } of manifest.tables)
    if (loaded.get(name) !== rows)
      throw new ArchiveError(
        'archive_damaged',
        `The archive has ${counted(rows, 'row')} of ${name}, but ${loaded.get(name) ?? 0} were loaded.`,
      );
}

/** Loads rows table by table: one COPY for each table. */
function createRowLoader(
  connection: BackupConnection,
  schema: string,
  { tables }: ArchiveHeader,
): RowLoader {
  let copy: Copy | undefined;

  async function endCopy(): Promise<void> {
    await copy?.end();
    copy = undefined;
  }

  return {
    async write(index, bytes) {
      if (copy && copy.table !== index) await endCopy();
      copy ??= openCopy(connection, index, copyIntoSql(schema, archivedTable(tables, index)));
      await copy.write(bytes);
    },
    end: endCopy,
  };
}

/** Loads rows of the engine `portable`: `rows` gets them as COPY text. */
async function createJsonLoader(
  rows: RowLoader,
  { connection, schema }: Staging,
  { tables }: ArchiveHeader,
  byMigrations: boolean,
): Promise<RowLoader> {
  // Staging tables have the columns of the archive, but NOT NULL only if migrations have made them.
  const columnsOf = await readColumns(queryOn(connection), byMigrations ? schema : 'public');
  const pause = createPause();
  let current: { index: number; rows: ReturnType<typeof createJsonRows> } | undefined;

  function open(index: number): ReturnType<typeof createJsonRows> {
    const { name, columns } = archivedTable(tables, index);
    const known = new Map(columnsOf.get(name)?.map((column) => [column.name, column]));
    return createJsonRows(columns.map((column) => assertDefined(known.get(column), column)));
  }

  return {
    async write(index, bytes) {
      if (current?.index !== index) current = { index, rows: open(index) };
      await rows.write(index, await current.rows.convert(bytes, pause));
    },
    end: () => rows.end(),
  };
}

/** Checksums of the rows of an archive, by the index of their table. */
export function createRowSums() {
  const sums = new Map<number, RowSum>();
  const pause = createPause();
  return {
    async add({ table, bytes }: { table: number; bytes: Buffer }): Promise<void> {
      const sum = sums.get(table) ?? createRowSum();
      sums.set(table, sum);
      await sum.add(bytes, pause);
    },
    digestOf: (table: number): string => (sums.get(table) ?? createRowSum()).digest(),
  };
}

/**
 * Reads the loaded tables back in the format of the archive. Returns the names of the tables whose
 * rows differ from those of the archive, which `sums` has.
 */
export async function findMismatchedTables(
  { connection, schema }: Staging,
  { header }: LoadedArchive,
  sums: ReturnType<typeof createRowSums>,
): Promise<string[]> {
  const mismatched: string[] = [];
  const pause = createPause();
  for (const [index, { name, columns }] of header.tables.entries()) {
    const sum = createRowSum();
    const table = `${quoteIdentifier(schema)}.${quoteIdentifier(name)}`;
    const rows = `SELECT ${columnList(columns)} FROM ${table}`;
    const copy = connection.query(copyTo(copyStatement(rows, header.engine)));
    for await (const bytes of copy as AsyncIterable<Buffer>) await sum.add(bytes, pause);
    if (sum.digest() !== sums.digestOf(index)) mismatched.push(name);
  }
  return mismatched;
}
