import { escapeLiteral } from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import type { BackupEngine } from '../../domain/backups.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import { columnsOf, quoted, type Ask } from './catalog.ts';
import { withSession, type Session } from './session.ts';
import type { BackedUpTable } from './tables.ts';

/** What is not a whole installation's is a tenant's. */
export type Extent = { tenantId: string | null };
export const extentAt = (tenantId: string): Extent => ({
  tenantId: tenantId === PLATFORM ? null : tenantId,
});

/** The records of one moment. */
export type Snapshot = {
  at: Date;
  schemaVersion: string;
  ask: Ask;
  columns(table: BackedUpTable): Promise<string[]>;
  /** The rows of a table, a line each. */
  rows(
    table: BackedUpTable,
    columns: readonly string[],
    engine: BackupEngine,
  ): AsyncIterable<Buffer>;
};

/**
 * Lines that COPY neither quotes nor escapes: JSON has no raw control characters but white space between its tokens,
 * which is made spaces.
 */
export const JSON_LINES = `(FORMAT csv, DELIMITER E'\\x02', QUOTE E'\\x01')`;

/** The statement that gives the rows of a query as an archive holds them. */
export const copyOut = (rows: string, engine: BackupEngine): string =>
  engine === 'snapshot'
    ? `COPY (${rows}) TO STDOUT`
    : `COPY (SELECT translate(row_to_json(r)::text, E'\\n\\r\\t', '   ') FROM (${rows}) AS r) TO STDOUT ${JSON_LINES}`;

export const askOf =
  (session: Session): Ask =>
  async <Row extends object>(sql: string, values: readonly unknown[] = []) =>
    (await session.query<Row>(sql, [...values])).rows;

/** SQL for the rows of a tenant, or of all; `t` is the table. */
export const extentOf = ({ ofTenant }: BackedUpTable, { tenantId }: Extent): string =>
  tenantId === null || ofTenant === null
    ? 'true'
    : ofTenant.replaceAll(':tenant', escapeLiteral(tenantId));

/** Reads all tables as they are at one moment, whatever is written meanwhile. Others are not kept from anything. */
export async function withSnapshot<T>(
  url: string,
  extent: Extent,
  signal: AbortSignal,
  use: (snapshot: Snapshot) => Promise<T>,
): Promise<T> {
  return withSession(url, signal, async (session) => {
    const ask = askOf(session);
    await session.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    // The first statement takes the snapshot.
    const [state] = await ask<{ at: Date; version: string }>(
      'SELECT clock_timestamp() AS at, (SELECT name FROM schema_migrations ORDER BY name DESC LIMIT 1) AS version',
    );
    if (!state) throw new Error('The database has no schema');
    return use({
      at: state.at,
      schemaVersion: state.version,
      ask,
      columns: async ({ name }) =>
        (await columnsOf(ask, 'public', name)).map((column) => column.name),
      rows: (table, columns, engine) => {
        const rows = `SELECT ${columns.map((column) => `t.${quoted(column)}`).join(', ')} FROM public.${quoted(table.name)} AS t WHERE ${extentOf(table, extent)}`;
        return session.query(copyTo(copyOut(rows, engine))) as AsyncIterable<Buffer>;
      },
    });
  });
}
