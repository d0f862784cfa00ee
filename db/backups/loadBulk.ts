import type { ArchiveHeader } from '../../platform/archive/index.ts';
import type { BackupConnection } from './backupConnection.ts';
import { archivedTable, copyIntoSql, openCopy, type Copy, type RowLoader } from './copyInto.ts';
import { createNewTable } from './newTables.ts';
import { isTakenWhole } from './tables.ts';

/** Loading into an empty database: large tables are loaded as new tables, by all connections. */
export type BulkLoad = {
  connections: readonly [BackupConnection, ...BackupConnection[]];
  /** From this size of its rows on a table is large. They are kept in memory until it is known. */
  largeTableBytes: number;
  /** The new tables, by name. */
  newTables: Set<string>;
};

export const LARGE_TABLE_BYTES = 8 << 20;

const NEWLINE = 10;

/** Loads rows table by table. Small tables are loaded into their staging table. */
export function createBulkLoader(
  { connections, largeTableBytes, newTables }: BulkLoad,
  schema: string,
  { tables }: ArchiveHeader,
): RowLoader {
  let index: number | undefined;
  let held: Buffer[] = [];
  let heldBytes = 0;
  let distributor: Distributor | undefined;

  /** Sends what is held of the current table, by all connections or by one. */
  async function send(isLarge: boolean): Promise<void> {
    const table = archivedTable(tables, index ?? 0);
    const isNew =
      isLarge &&
      isTakenWhole(table.name) &&
      (await createNewTable(connections[0], schema, table.name));
    if (isNew) newTables.add(table.name);
    const sql = copyIntoSql(schema, table);
    const copies = connections
      .slice(0, isNew ? connections.length : 1)
      .map((connection) => openCopy(connection, index ?? 0, sql));
    distributor = createDistributor(copies);
    for (const bytes of held) await distributor.write(bytes);
    [held, heldBytes] = [[], 0];
  }

  async function endTable(): Promise<void> {
    if (held.length > 0) await send(heldBytes >= largeTableBytes);
    await distributor?.end();
    distributor = undefined;
  }

  return {
    async write(table, bytes) {
      if (table !== index) await endTable();
      index = table;
      if (distributor) return distributor.write(bytes);
      held.push(bytes);
      heldBytes += bytes.length;
      if (heldBytes >= largeTableBytes) await send(true);
    },
    end: endTable,
  };
}

type Distributor = { write(bytes: Buffer): Promise<void>; end(): Promise<void> };

/**
 * Distributes rows to several COPYs: each gets complete lines as soon as it accepts more. In COPY text
 * a line feed always ends a row.
 */
function createDistributor(copies: readonly Copy[]): Distributor {
  const idle = [...copies];
  const busy = new Set<Promise<void>>();
  let rest: Buffer = Buffer.alloc(0);

  async function send(bytes: Buffer): Promise<void> {
    while (idle.length === 0) await Promise.race(busy);
    const [copy] = idle.splice(0, 1);
    if (!copy) return;
    const writing: Promise<void> = copy.write(bytes).then(() => {
      idle.push(copy);
      busy.delete(writing);
    });
    busy.add(writing);
    // A failure is thrown by the next race, or at the end.
    writing.catch(() => undefined);
  }

  return {
    async write(bytes) {
      const lineEnd = bytes.lastIndexOf(NEWLINE) + 1;
      const lines = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
      const complete = lineEnd === 0 ? 0 : lines.length - (bytes.length - lineEnd);
      rest = lines.subarray(complete);
      if (complete > 0) await send(lines.subarray(0, complete));
    },
    async end() {
      if (rest.length > 0) await send(rest);
      await Promise.all(busy);
      await Promise.all(copies.map((copy) => copy.end()));
    },
  };
}
