import type { MessagePort } from 'node:worker_threads';
import { copyRows } from '../../db/backups/copyRows.ts';
import { withSnapshotReaders } from '../../db/backups/snapshot.ts';
import {
  ArchiveError,
  createArchiveWriter,
  readArchive,
  type ArchiveHeader,
  type ArchiveManifest,
  type RowSink,
} from '../../platform/archive/index.ts';
import { createByteSender, receiveBytes } from '../../platform/byteChannel.ts';

/** Reads the rows of a snapshot and sends the archive. `copies`: the statements of each table. */
export type WriteArchive = {
  kind: 'write';
  databaseUrl: string;
  snapshotId: string;
  header: ArchiveHeader;
  copies: readonly (readonly string[])[];
  key: Uint8Array;
  port: MessagePort;
};

/** Receives an archive, decrypts and decompresses all of it, and checks that it is complete. */
type VerifyArchive = { kind: 'verify'; key: Uint8Array; port: MessagePort };

export type ArchiveTask = WriteArchive | VerifyArchive;

/** Errors lose their class and their code on the way to another thread. */
export type ArchiveTaskResult =
  | { kind: 'done'; manifest: ArchiveManifest }
  | { kind: 'archive_error'; code: ArchiveError['code']; message: string }
  | { kind: 'failed'; code: string | undefined; message: string; stack: string | undefined };

/**
 * Connections that read rows concurrently. One thread compresses, hashes and encrypts what two
 * processes of PostgreSQL read.
 */
const READERS = 2;

/** Executes a task in a thread of its own: the main thread keeps answering, and its heap is large. */
export default async function runArchiveTask(task: ArchiveTask): Promise<ArchiveTaskResult> {
  try {
    const manifest = task.kind === 'write' ? await write(task) : await verify(task);
    return { kind: 'done', manifest };
  } catch (error) {
    if (error instanceof ArchiveError)
      return { kind: 'archive_error', code: error.code, message: error.message };
    const { code, message, stack } = error as NodeJS.ErrnoException;
    return { kind: 'failed', code, message, stack };
  } finally {
    task.port.close();
  }
}

async function write({
  databaseUrl,
  snapshotId,
  header,
  copies,
  key,
  port,
}: WriteArchive): Promise<ArchiveManifest> {
  const sender = createByteSender(port);
  const readers = { snapshotId, count: READERS };
  return withSnapshotReaders(databaseUrl, readers, async (connections) => {
    const writer = await createArchiveWriter(header, Buffer.from(key), sender);
    for (const [index, parts] of copies.entries()) {
      sender.mark(index);
      const waiting = [...parts];
      const readParts = (connection: (typeof connections)[number]) => async (sink: RowSink) => {
        for (let sql = waiting.shift(); sql !== undefined; sql = waiting.shift())
          await copyRows(connection, sql, sink);
      };
      await writer.rows(connections.slice(0, parts.length).map(readParts));
    }
    const manifest = await writer.finish();
    sender.end();
    return manifest;
  });
}

async function verify({ key, port }: VerifyArchive): Promise<ArchiveManifest> {
  let manifest: ArchiveManifest | undefined;
  const parts = readArchive(receiveBytes(port), () => Buffer.from(key), { withHashes: false });
  for await (const part of parts) if (part.kind === 'manifest') ({ manifest } = part);
  if (!manifest) throw new ArchiveError('archive_truncated', 'The archive ends too early.');
  return manifest;
}
