import { to as copyTo } from 'pg-copy-streams';
import {
  ArchiveError,
  type ArchivedTable,
  type ArchiveHeader,
  type ArchiveManifest,
  type ArchivePart,
} from '../../platform/archive/index.ts';
import { createPause } from '../../platform/turns.ts';
import type { BackupConnection } from './backupConnection.ts';
import { quoteIdentifier, readColumns } from './catalog.ts';
import { copyIntoSql, openCopy, type Copy, type RowLoader } from './copyInto.ts';
import { createBulkLoader } from './loadBulk.ts';
import { copyStatement, JSON_LINES } from './snapshot.ts';
import { createRowSum, type RowSum } from './rowSum.ts';
import { columnList, countRows, queryOn } from './sql.ts';
import { createStaging, lockStaging, type LoadedArchive, type Staging } from './staging.ts';

/** Lines of JSON are converted to rows in batches of about this size. */
const JSON_BATCH_BYTES = 64 << 20;
const NEWLINE = 10;

type OnRows = (part: Extract<ArchivePart, { kind: 'rows' }>) => Promise<void> | void;

/**
 * Loads an archive into its staging schema, which is created again. Live tables are only read.
 * `onRows` receives each piece that was loaded. Errors: `ArchiveError`,
 * `SchemaTooNew`, `StagingBusy`, and database errors when rows do not match their columns.
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
      pendingMigrations = await createStaging(staging, header);
      const { bulk } = staging;
      rows =
        bulk && header.engine === 'snapshot' && pendingMigrations.length === 0
          ? createBulkLoader(bulk, schema, header)
          : await createRowLoader(connection, schema, header);
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
        `The archive has ${rows} rows of ${name}, but ${loaded.get(name) ?? 0} were loaded.`,
      );
}

/** Loads rows table by table: one COPY for each table, or for each batch of JSON lines. */
async function createRowLoader(
  connection: BackupConnection,
  schema: string,
  header: ArchiveHeader,
): Promise<RowLoader> {
  await connection.query(`CREATE UNLOGGED TABLE ${quoteIdentifier(schema)}._lines (line text)`);
  let copy: Copy | undefined;

  async function endCopy(): Promise<void> {
    await copy?.end();
    copy = undefined;
  }

  /** Ends a full batch after the last complete line in `bytes`. Returns the bytes that follow. */
  async function endFullBatch(current: Copy, bytes: Buffer): Promise<Buffer> {
    const isFull = header.engine === 'portable' && current.bytes > JSON_BATCH_BYTES;
    const lineEnd = isFull ? bytes.lastIndexOf(NEWLINE) + 1 : 0;
    if (lineEnd === 0) return bytes;
    await current.write(bytes.subarray(0, lineEnd));
    await endCopy();
    return bytes.subarray(lineEnd);
  }

  return {
    async write(table, bytes) {
      if (copy && copy.table !== table) await endCopy();
      const rest = copy ? await endFullBatch(copy, bytes) : bytes;
      copy ??= openTableCopy(connection, schema, header, table);
      await copy.write(rest);
    },
    end: endCopy,
  };
}

/**
 * Starts the COPY for rows of one table. Error: `ArchiveError` when the header has no such table.
 */
function openTableCopy(
  connection: BackupConnection,
  schema: string,
  { engine, tables }: ArchiveHeader,
  index: number,
): Copy {
  const table = tables[index];
  if (!table)
    throw new ArchiveError(
      'archive_damaged',
      'The archive is damaged: it has rows of a table that its header does not name.',
    );
  const quoted = quoteIdentifier(schema);
  if (engine === 'portable') {
    const sql = `COPY ${quoted}._lines FROM STDIN ${JSON_LINES}`;
    return openCopy(connection, index, sql, () => insertJsonLines(connection, schema, table));
  }
  return openCopy(connection, index, copyIntoSql(schema, table));
}

/** Converts the lines of a batch to rows. */
async function insertJsonLines(
  connection: BackupConnection,
  schema: string,
  { name, columns }: ArchivedTable,
): Promise<void> {
  const quoted = quoteIdentifier(schema);
  const target = `${quoted}.${quoteIdentifier(name)}`;
  const types = new Map(
    (await readColumns(queryOn(connection), 'public'))
      .get(name)
      ?.map((column) => [column.name, column]),
  );
  const valueOf = (column: string) => {
    const known = types.get(column);
    const value = `r.${quoteIdentifier(column)}`;
    // In a column that is NOT NULL, JSON null is the JSON value null.
    return known?.notNull && known.type.startsWith('json') ? `coalesce(${value}, 'null')` : value;
  };
  await connection.query(
    `INSERT INTO ${target} (${columnList(columns)}) SELECT ${columns.map(valueOf).join(', ')}
     FROM ${quoted}._lines AS l, json_populate_record(NULL::${target}, l.line::json) AS r`,
  );
  await connection.query(`TRUNCATE ${quoted}._lines`);
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
