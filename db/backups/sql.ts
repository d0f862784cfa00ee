import { escapeLiteral } from 'pg';
import type { Knex } from '../core/knex.ts';
import type { BackupConnection } from './backupConnection.ts';
import { quoteIdentifier, type Column, type Reference, type RunQuery } from './catalog.ts';
import type { BackedUpTable } from './tables.ts';

/** Runs statements of this module's form in a transaction, or on the pool; none after `signal` is aborted. */
export const queryIn =
  (trx: Knex, signal?: AbortSignal): RunQuery =>
  async <Row extends object>(sql: string, values: readonly unknown[] = []) => {
    signal?.throwIfAborted();
    // Knex treats every question mark as a placeholder; these statements use numbered values only.
    const { rows } = await trx.raw<{ rows: Row[] }>(
      sql.replaceAll('?', '\\?').replace(/\$\d+/g, '?'),
      values as Knex.RawBinding[],
    );
    return rows;
  };

/** Runs statements on a connection of its own. */
export const queryOn =
  (connection: BackupConnection): RunQuery =>
  async <Row extends object>(sql: string, values: readonly unknown[] = []) =>
    (await connection.query<Row>(sql, [...values])).rows;

/** Runs statements in one round trip. None has values, and none returns rows that are needed. */
export async function runAll(query: RunQuery, statements: readonly string[]): Promise<void> {
  if (statements.length > 0) await query(statements.join(';\n'));
}

/** One statement that counts the rows of tables: `name` and `rows`. `tables`: their SQL by name. */
export const rowCountsSql = (tables: ReadonlyMap<string, string>): string =>
  [...tables]
    .map(([name, sql]) => `SELECT ${escapeLiteral(name)} AS name, count(*) AS rows FROM ${sql}`)
    .join(' UNION ALL ');

/** The number of rows of each table. */
export async function countRows(
  query: RunQuery,
  tables: ReadonlyMap<string, string>,
): Promise<ReadonlyMap<string, number>> {
  if (tables.size === 0) return new Map();
  const counts = await query<{ name: string; rows: number }>(rowCountsSql(tables));
  return new Map(counts.map(({ name, rows }) => [name, rows]));
}

/** The table that the application reads and writes. */
export const liveTable = ({ name }: BackedUpTable): string => `public.${quoteIdentifier(name)}`;

/** The table that an archive was loaded into. */
export const stagedTable = (schema: string, { name }: BackedUpTable): string =>
  `${quoteIdentifier(schema)}.${quoteIdentifier(name)}`;

/**
 * The temporary table with the keys of the rows that differ, and `change`: what would happen to
 * them.
 */
export const diffTable = ({ name }: BackedUpTable): string =>
  `pg_temp.${quoteIdentifier(`_diff_${name}`)}`;

/** The number of differences of each table. */
export const countDiffs = (
  query: RunQuery,
  tables: readonly { table: BackedUpTable }[],
): Promise<ReadonlyMap<string, number>> =>
  countRows(query, new Map(tables.map(({ table }) => [table.name, diffTable(table)])));

/** A list of columns: `a.id, a.name`. */
export const columnList = (names: readonly string[], alias?: string): string =>
  names
    .map((name) =>
      alias === undefined ? quoteIdentifier(name) : `${alias}.${quoteIdentifier(name)}`,
    )
    .join(', ');

/** True when two rows have the same values in these columns: `a.id = b.id AND …`. */
export const columnsEqual = (names: readonly string[], one: string, other: string): string =>
  names
    .map((name) => `${one}.${quoteIdentifier(name)} = ${other}.${quoteIdentifier(name)}`)
    .join(' AND ');

/** True when the row `child` refers to the row `parent` by this foreign key. */
export const refersTo = ({ columns }: Reference, child: string, parent: string): string =>
  columns
    .map(
      (pair) =>
        `${child}.${quoteIdentifier(pair.child)} = ${parent}.${quoteIdentifier(pair.parent)}`,
    )
    .join(' AND ');

/**
 * A column in a form that can be compared. JSON is compared by its text, since a restore returns
 * exactly the text that was stored, and floating-point numbers because NaN equals nothing.
 */
export const comparableColumn = (alias: string, { name, type }: Column): string =>
  type.startsWith('json') || type.startsWith('double')
    ? `${alias}.${quoteIdentifier(name)}::text`
    : `${alias}.${quoteIdentifier(name)}`;
