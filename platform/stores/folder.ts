import { randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { ARCHIVE_SUFFIX, safeName, StoreError, type ArchiveStore, type Pending } from './store.ts';

/** Unfinished files: the name of the archive, then this and something by chance. */
const PART = '.part-';

const codeOf = (error: unknown): string => {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' ? code : '';
};

/** Errors of the file system in our words; paths of the machine stay out of them. */
function toStoreError(error: unknown): unknown {
  const code = codeOf(error);
  if (code === 'ENOENT')
    return new StoreError('archive_missing', 'The archive is not in the folder of backups.', false);
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG')
    return new StoreError('store_full', 'There is no room in the folder of backups.', true);
  if (['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'EISDIR'].includes(code))
    return new StoreError(
      'store_refused',
      `The folder of backups cannot be used (${code}).`,
      false,
    );
  if (code.startsWith('E'))
    return new StoreError(
      'store_unavailable',
      `The folder of backups cannot be used now (${code}).`,
      true,
    );
  return error;
}

async function told<T>(step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    throw toStoreError(error);
  }
}

/** What a rename did survives a crash when the folder was written out. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Archives in a folder of this machine, or one that machines share. */
export function createFolderStore(folder: string): ArchiveStore {
  const at = (name: string) => path.join(folder, safeName(name));

  async function clear(name: string): Promise<void> {
    for (const file of (await readdir(folder).catch(noFolder)).filter((each) =>
      each.startsWith(`${safeName(name)}${PART}`),
    ))
      await rm(at(file), { force: true });
  }

  return {
    kind: 'folder',

    begin: (name) =>
      told(async () => {
        await mkdir(folder, { recursive: true, mode: 0o700 });
        const part = `${safeName(name)}${PART}${randomBytes(6).toString('hex')}`;
        const handle = await open(at(part), 'wx', 0o600);
        let sizeBytes = 0;
        return {
          write: (bytes) =>
            told(async () => {
              for (let written = 0; written < bytes.length;)
                written += (await handle.write(bytes, written)).bytesWritten;
              sizeBytes += bytes.length;
            }),
          finish: () =>
            told(async (): Promise<Pending> => {
              await handle.sync();
              await handle.close();
              return { kind: 'folder', part, sizeBytes };
            }),
          async abort() {
            await handle.close().catch(() => undefined);
            await rm(at(part), { force: true });
          },
        };
      }),

    seal: (name, pending) =>
      told(async () => {
        if (pending.kind !== 'folder')
          throw new StoreError('store_refused', 'The archive was begun in another store.', false);
        try {
          await rename(at(pending.part), at(name));
        } catch (error) {
          // Done before, by an attempt that could not say so.
          if (codeOf(error) !== 'ENOENT' || (await stat(at(name))).size !== pending.sizeBytes)
            throw error;
        }
        await syncFolder(folder);
      }),

    async *read(name) {
      try {
        yield* createReadStream(at(name), { highWaterMark: 1 << 18 }) as AsyncIterable<Buffer>;
      } catch (error) {
        throw toStoreError(error);
      }
    },

    sizeOf: async (name) =>
      stat(at(name)).then(
        ({ size }) => size,
        (error: unknown) => {
          if (codeOf(error) === 'ENOENT') return null;
          throw toStoreError(error);
        },
      ),

    // What is begun goes first: nothing can become an archive any more when that is removed.
    // A folder that is not there is one that is not mounted: what it has is not gone.
    remove: (name) =>
      told(async () => {
        await stat(folder).catch((error: unknown) => {
          throw codeOf(error) === 'ENOENT'
            ? new StoreError('store_unavailable', 'The folder of backups is not there.', true)
            : error;
        });
        await clear(name);
        await rm(at(name), { force: true });
        await syncFolder(folder);
      }),

    clear: (name) => told(() => clear(name)),

    unfinished: () =>
      told(async () => [
        ...new Set(
          (await readdir(folder).catch(noFolder))
            .filter((file) => file.includes(PART))
            .map((file) => file.slice(0, file.indexOf(PART))),
        ),
      ]),

    async *list() {
      for (const name of (await readdir(folder).catch(noFolder))
        .filter((file) => file.endsWith(ARCHIVE_SUFFIX))
        .sort()) {
        const found = await stat(at(name)).catch(() => undefined);
        if (found?.isFile()) yield { name, sizeBytes: found.size, modifiedAt: found.mtime };
      }
    },

    close: () => undefined,
  };
}

function noFolder(error: unknown): string[] {
  if (codeOf(error) === 'ENOENT') return [];
  throw toStoreError(error);
}
