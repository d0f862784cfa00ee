import { escapeLiteral } from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import type { BackupEngine } from '../../domain/backups/backups.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import { withBackupConnection } from './backupConnection.ts';
import { readColumns, type RunQuery } from './catalog.ts';
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
  at: Date;
  /** The name of the newest migration of the database. */
  schemaVersion: string;
  query: RunQuery;
  /** The columns of all tables by the name of the table. */
  columns(): ReturnType<typeof readColumns>;
  /** The rows of a table in the format of the engine, one row a line. */
  rows(
    table: BackedUpTable,
    columns: readonly string[],
    engine: BackupEngine,
  ): AsyncIterable<Buffer>;
};

/**
 * COPY options for lines of JSON, under which COPY neither quotes nor escapes: the delimiter and
 * the quote are control characters, which JSON never contains unescaped.
 */
export const JSON_LINES = `(FORMAT csv, DELIMITER E'\\x02', QUOTE E'\\x01')`;

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
    const [state] = await query<{ at: Date; version: string }>(
      `SELECT clock_timestamp() AS at,
         (SELECT name FROM schema_migrations ORDER BY name DESC LIMIT 1) AS version`,
    );
    if (!state) throw new Error('The database has no schema');
    return use({
      at: state.at,
      schemaVersion: state.version,
      query,
      columns: () => readColumns(query, 'public'),
      rows: (table, columns, engine) => {
        const rows = `SELECT ${columnList(columns, 't')} FROM ${liveTable(table)} AS t
          WHERE ${scopeFilter(table, scope)}`;
        return connection.query(copyTo(copyStatement(rows, engine))) as AsyncIterable<Buffer>;
      },
    });
  });
}
