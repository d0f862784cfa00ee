import { escapeLiteral } from 'pg';
import type { BackupEngine } from '../../domain/backups/backups.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import {
  withBackupConnection,
  withBackupConnections,
  type BackupConnection,
} from './backupConnection.ts';
import { readColumns, type RunQuery } from './catalog.ts';
import { createRowSocket } from './rowSocket.ts';
import { columnList, liveTable, queryOn } from './sql.ts';
import type { BackedUpTable } from './tables.ts';

/** What a backup covers: one tenant, or the whole installation when `tenantId` is null. */
export type BackupScope = { tenantId: string | null };

/** The scope of a backup that belongs to a tenant; the platform's covers the installation. */
export const backupScope = (tenantId: string): BackupScope => ({
  tenantId: tenantId === PLATFORM ? null : tenantId,
});

/** The records of one instant, `at`. */
export type Snapshot = {
  /** With it, other connections read the same records until the snapshot ends. */
  id: string;
  at: Date;
  /** The name of the newest migration of the database. */
  schemaVersion: string;
  query: RunQuery;
  /** The columns of all tables by the name of the table. */
  columns(): ReturnType<typeof readColumns>;
  /**
   * The COPY statements that return the rows of a table in the format of the engine, one row a line.
   * A table of more than `partPages` has several, which can run concurrently.
   */
  copies(
    table: BackedUpTable,
    columns: readonly string[],
    engine: BackupEngine,
    partPages?: number,
  ): Promise<string[]>;
};

/**
 * COPY options for lines of JSON, under which COPY neither quotes nor escapes: the delimiter and
 * the quote are control characters, which JSON never contains unescaped.
 */
const JSON_LINES = `(FORMAT csv, DELIMITER E'\\x02', QUOTE E'\\x01')`;

/**
 * The COPY statement that returns the rows of a query in the format of an engine. White space
 * between JSON tokens, the only unescaped control characters, is replaced by spaces.
 */
export const copyStatement = (rows: string, engine: BackupEngine): string =>
  engine === 'snapshot'
    ? `COPY (${rows}) TO STDOUT`
    : `COPY (SELECT translate(row_to_json(r)::text, E'\\n\\r\\t', '   ') FROM (${rows}) AS r)
       TO STDOUT ${JSON_LINES}`;

/** SQL condition on the alias `t` that selects the rows of a table inside a scope. */
export const scopeFilter = ({ tenantFilter }: BackedUpTable, { tenantId }: BackupScope): string =>
  tenantId === null || tenantFilter === null
    ? 'true'
    : tenantFilter.replaceAll(':tenant', escapeLiteral(tenantId));

/**
 * Runs `use` with a consistent snapshot of all tables in `scope`. The snapshot is one read-only
 * transaction on a connection of its own; it blocks no writers.
 */
export async function withSnapshot<T>(
  url: string,
  scope: BackupScope,
  signal: AbortSignal,
  use: (snapshot: Snapshot) => Promise<T>,
): Promise<T> {
  return withBackupConnection(url, signal, async (connection) => {
    const query = queryOn(connection);
    await connection.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    // The first statement of the transaction takes the snapshot.
    const [state] = await query<{ id: string; at: Date; version: string }>(
      `SELECT pg_export_snapshot() AS id, clock_timestamp() AS at,
         (SELECT name FROM schema_migrations ORDER BY name DESC LIMIT 1) AS version`,
    );
    if (!state) throw new Error('The database has no schema');
    let pages: ReadonlyMap<string, number> | undefined;
    return use({
      id: state.id,
      at: state.at,
      schemaVersion: state.version,
      query,
      columns: () => readColumns(query, 'public'),
      async copies(table, columns, engine, partPages = MIN_PART_PAGES) {
        const rows = `SELECT ${columnList(columns, 't')} FROM ${liveTable(table)} AS t
          WHERE ${scopeFilter(table, scope)}`;
        // Rows of one tenant are found by an index, those of all tenants by reading all pages.
        if (scope.tenantId !== null) return [copyStatement(rows, engine)];
        pages ??= await countPages(query);
        const parts = splitTable(pages.get(table.name) ?? 0, partPages);
        return parts.map((part) => copyStatement(`${rows} AND ${part}`, engine));
      },
    });
  });
}

/** The smallest part of a table that one COPY returns, in pages: 16 MiB. */
const MIN_PART_PAGES = 2_048;
const MAX_PARTS = 256;

/** The number of pages of each table; of a partitioned one, that of its largest partition. */
async function countPages(query: RunQuery): Promise<ReadonlyMap<string, number>> {
  const sizes = await query<{ name: string; pages: number }>(
    `SELECT c.relname::text AS name,
       ceil(coalesce((SELECT max(pg_relation_size(p.relid)) FROM pg_partition_tree(c.oid) AS p),
         pg_relation_size(c.oid)) / current_setting('block_size')::numeric)::integer AS pages
     FROM pg_class AS c
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')`,
  );
  return new Map(sizes.map(({ name, pages }) => [name, pages]));
}

/**
 * SQL conditions on the alias `t` that divide a table into parts by the position of its rows, which
 * PostgreSQL reads as ranges of pages. The last part has no end.
 */
function splitTable(pages: number, minPartPages: number): string[] {
  const partPages = Math.max(minPartPages, Math.ceil(pages / MAX_PARTS));
  const starts: number[] = [];
  for (let page = partPages; page < pages; page += partPages) starts.push(page);
  if (starts.length === 0) return ['true'];
  return [0, ...starts].map((start, at) => {
    const end = starts[at];
    return `t.ctid >= '(${start},0)'${end === undefined ? '' : ` AND t.ctid < '(${end},0)'`}`;
  });
}

/** Runs `use` with connections that read the records of a snapshot, which must not have ended. */
export async function withSnapshotReaders<T>(
  url: string,
  { snapshotId, count }: { snapshotId: string; count: number },
  use: (readers: readonly [BackupConnection, ...BackupConnection[]]) => Promise<T>,
): Promise<T> {
  const options = { signal: NEVER, count, createSocket: createRowSocket };
  return withBackupConnections(url, options, async (readers) => {
    for (const reader of readers)
      await reader.query(
        `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
         SET TRANSACTION SNAPSHOT ${escapeLiteral(snapshotId)}`,
      );
    return use(readers);
  });
}

/** The thread that reads is ended instead. */
const NEVER = new AbortController().signal;
