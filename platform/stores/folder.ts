import { randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, rename, rm, stat, unlink } from 'node:fs/promises';
import path from 'node:path';
import { createStore, type StoreAccess } from './createStore.ts';
import {
  checkedName,
  isArchiveName,
  StoreError,
  type ArchiveStore,
  type ArchiveUpload,
} from './store.ts';

const newPart = (name: string): string =>
  `${checkedName(name)}.part-${randomBytes(6).toString('hex')}`;

/** The name of an unfinished upload is that of the archive and a random suffix. */
const PART = /^(.+)\.part-[0-9a-f]{12}$/;

/** The archive of which a file is an unfinished upload. */
const archiveOfPart = (file: string): string | undefined => PART.exec(file)?.[1];

const codeOf = (error: unknown): string => {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' ? code : '';
};

/** Converts file system errors, whose messages have paths, to `StoreError`. */
function toStoreError(error: unknown): unknown {
  const code = codeOf(error);
  if (code === 'ENOENT')
    return new StoreError('archive_missing', 'The archive is not in the backup folder.', false);
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG')
    return new StoreError('store_full', 'The backup folder is full.', true);
  if (['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'EISDIR'].includes(code))
    return new StoreError('store_refused', `The backup folder cannot be used (${code}).`, false);
  if (code.startsWith('E'))
    return new StoreError(
      'store_unavailable',
      `The backup folder is temporarily unavailable (${code}).`,
      true,
    );
  return error;
}

/** Makes a rename or removal in the folder durable. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Removes a file. Returns false if it does not exist. */
const unlinkIfExists = (file: string): Promise<boolean> =>
  unlink(file).then(
    () => true,
    (error: unknown) => {
      if (codeOf(error) === 'ENOENT') return false;
      throw error;
    },
  );

function nullIfMissing(error: unknown): null {
  if (codeOf(error) === 'ENOENT') return null;
  throw error;
}

const emptyIfMissing = (error: unknown): [] => nullIfMissing(error) ?? [];

/** Stores archives in a local or shared folder. */
export const createFolderStore = (folder: string): ArchiveStore =>
  createStore('folder', () => Promise.resolve(createFolderAccess(folder)));

async function startUpload(file: string, part: string): Promise<ArchiveUpload> {
  const handle = await open(file, 'wx', 0o600);
  let sizeBytes = 0;
  return {
    async write(bytes) {
      for (let written = 0; written < bytes.length;)
        written += (await handle.write(bytes, written)).bytesWritten;
      sizeBytes += bytes.length;
    },
    async finish() {
      await handle.sync();
      await handle.close();
      return { kind: 'folder', part, sizeBytes };
    },
    async abort() {
      await handle.close().catch(() => undefined);
      await rm(file, { force: true });
    },
  };
}

function createFolderAccess(folder: string): StoreAccess {
  const pathOf = (name: string) => path.join(folder, checkedName(name));

  async function abortUploads(name: string): Promise<void> {
    for (const file of await readdir(folder).catch(emptyIfMissing))
      if (archiveOfPart(file) === name) await rm(pathOf(file), { force: true });
  }

  return {
    toStoreError,

    async startUpload(name) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const part = newPart(name);
      return startUpload(pathOf(part), part);
    },

    async finalize(name, pending) {
      if (pending.kind !== 'folder')
        throw new StoreError('store_refused', 'The upload was started in another store.', false);
      try {
        await rename(pathOf(pending.part), pathOf(name));
      } catch (error) {
        // An earlier attempt has renamed the file, but its result was lost.
        if (codeOf(error) !== 'ENOENT' || (await stat(pathOf(name))).size !== pending.sizeBytes)
          throw error;
      }
      await syncFolder(folder);
    },

    read: (name) =>
      createReadStream(pathOf(name), { highWaterMark: 1 << 18 }) as AsyncIterable<Buffer>,

    sizeOf: async (name) => stat(pathOf(name)).then(({ size }) => size, nullIfMissing),

    // Uploads are removed first: otherwise one could be finalized after the removal.
    // A missing folder is probably not mounted, so its archives still exist.
    async remove(name, { uploadedOnce = false } = {}) {
      await stat(folder).catch((error: unknown) => {
        throw codeOf(error) === 'ENOENT'
          ? new StoreError('store_unavailable', 'The backup folder does not exist.', true)
          : error;
      });
      const isArchive = uploadedOnce && (await unlinkIfExists(pathOf(name)));
      if (!isArchive) {
        await abortUploads(name);
        await rm(pathOf(name), { force: true });
      }
      await syncFolder(folder);
    },

    abortUploads,

    async listUnfinished() {
      const files = await readdir(folder).catch(emptyIfMissing);
      const names = files.flatMap((file) => archiveOfPart(file) ?? []);
      return [...new Set(names.filter(isArchiveName))];
    },

    async *list() {
      for (const name of (await readdir(folder).catch(emptyIfMissing))
        .filter(isArchiveName)
        .sort()) {
        const found = await stat(pathOf(name)).catch(nullIfMissing);
        if (found?.isFile()) yield { name, sizeBytes: found.size, modifiedAt: found.mtime };
      }
    },

    close: () => undefined,
  };
}
