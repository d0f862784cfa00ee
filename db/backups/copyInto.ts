import { once } from 'node:events';
import { finished } from 'node:stream/promises';
import { from as copyFrom } from 'pg-copy-streams';
import { ArchiveError, type ArchivedTable } from '../../platform/archive/index.ts';
import type { BackupConnection } from './backupConnection.ts';
import { quoteIdentifier } from './catalog.ts';
import { columnList } from './sql.ts';

/** A COPY … FROM STDIN in progress. */
export type Copy = {
  /** The index of the table in the header. */
  table: number;
  write(bytes: Buffer): Promise<void>;
  end(): Promise<void>;
};

export type RowLoader = {
  /** Writes a piece of the rows of a table; `table` is its index in the header. */
  write(table: number, bytes: Buffer): Promise<void>;
  end(): Promise<void>;
};

/** The table with this index in a header. Error: `ArchiveError`. */
export function archivedTable(tables: readonly ArchivedTable[], index: number): ArchivedTable {
  const table = tables[index];
  if (table) return table;
  throw new ArchiveError(
    'archive_damaged',
    'The archive is damaged: it has rows of a table that its header does not name.',
  );
}

/** The statement that loads the rows of an archived table. */
export const copyIntoSql = (schema: string, { name, columns }: ArchivedTable): string =>
  `COPY ${quoteIdentifier(schema)}.${quoteIdentifier(name)} (${columnList(columns)}) FROM STDIN`;

/** Starts a COPY for the table with this index in the header. */
export function openCopy(connection: BackupConnection, table: number, sql: string): Copy {
  const stream = connection.query(copyFrom(sql));
  const done = finished(stream);
  // A failure is reported by the next write or by the end.
  done.catch(() => undefined);
  return {
    table,
    async write(bytes) {
      if (!stream.write(bytes)) await Promise.race([once(stream, 'drain'), done]);
    },
    async end() {
      stream.end();
      await done;
    },
  };
}
