import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { ArchiveError, type ArchiveManifest } from '../../platform/archive/index.ts';
import { ChannelClosed, createByteSender, receiveBytes } from '../../platform/byteChannel.ts';
import { createThreadPool } from '../../platform/threadPool.ts';
import type { ArchiveTask, ArchiveTaskResult, WriteArchive } from './archiveThread.ts';
import { MAX_CONCURRENT_STEPS } from './concurrencyLimit.ts';

type Snapshot = Pick<WriteArchive, 'databaseUrl' | 'snapshotId' | 'header' | 'copies'>;
type WriteOptions = {
  key: Buffer;
  signal: AbortSignal;
  write(bytes: Buffer): Promise<void>;
  onTable(index: number): void;
};

/**
 * Threads that write and verify archives, one for each step. The bytes of the archives pass through
 * this thread, which has the stores.
 */
export function createArchiveThreads() {
  const pool = createThreadPool<ArchiveTask, ArchiveTaskResult>({
    module: new URL('./archiveThread.ts', import.meta.url),
    maxThreads: MAX_CONCURRENT_STEPS,
    maxQueued: MAX_CONCURRENT_STEPS,
    memoryMb: 128,
    busy: 'Too many archives are being written or verified.',
  });

  /** Runs a task while `transfer` moves its bytes. The failure of one ends the other. */
  async function run(
    task: (port: MessagePort) => ArchiveTask,
    signal: AbortSignal,
    transfer: (port: MessagePort) => Promise<void>,
  ): Promise<ArchiveManifest> {
    const { port1, port2 } = new MessageChannel();
    const stop = new AbortController();
    const result = pool.run(task(port2), {
      transfer: [port2],
      signal: AbortSignal.any([signal, stop.signal]),
    });
    // A thread that ends closes its port. One that has not started has none.
    result.catch(() => port2.close());
    try {
      await transfer(port1);
    } catch (error) {
      // The result says why the thread has closed the channel.
      if (!(error instanceof ChannelClosed)) {
        stop.abort();
        throw error;
      }
    } finally {
      port1.close();
    }
    return manifestOf(await result);
  }

  return {
    /**
     * Writes the archive of a snapshot. `onTable` receives the index of each table before its rows
     * are read. Errors: those of the database and of `write`.
     */
    write: (
      snapshot: Snapshot,
      { key, signal, write, onTable }: WriteOptions,
    ): Promise<ArchiveManifest> =>
      run(
        (port) => ({ kind: 'write', ...snapshot, key, port }),
        signal,
        async (port) => {
          for await (const { buffer, byteOffset, byteLength } of receiveBytes(port, onTable))
            await write(Buffer.from(buffer, byteOffset, byteLength));
        },
      ),

    /** Verifies all of an archive. Errors: `ArchiveError`, and those of `bytes`. */
    verify: (
      bytes: AsyncIterable<Uint8Array>,
      { key, signal }: { key: Buffer; signal: AbortSignal },
    ): Promise<ArchiveManifest> =>
      run(
        (port) => ({ kind: 'verify', key, port }),
        signal,
        async (port) => {
          const sender = createByteSender(port);
          for await (const piece of bytes) await sender.write(piece);
          sender.end();
        },
      ),

    close: (): Promise<void> => pool.close(),
  };
}

/** The manifest, or the error of a task as it was. */
function manifestOf(result: ArchiveTaskResult): ArchiveManifest {
  if (result.kind === 'done') return result.manifest;
  if (result.kind === 'archive_error') throw new ArchiveError(result.code, result.message);
  const { message, code, stack } = result;
  throw Object.assign(new Error(message), { code, stack });
}
