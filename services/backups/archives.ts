import { randomBytes } from 'node:crypto';
import { ArchiveTooNew, StagingBusy } from '../../db/backups/staging.ts';
import type { Backup } from '../../db/models/Backup.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { isBusyError } from '../../domain/shared/busy.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { JobFailure } from '../../domain/jobs/jobType.ts';
import {
  ArchiveError,
  readArchive,
  withHeader,
  type ArchiveHeader,
  type ArchiveManifest,
  type ArchivePart,
  type Unseal,
} from '../../platform/archive/index.ts';
import { StoreError, type ArchiveStore, type StoreKind } from '../../platform/stores/store.ts';
import type { Vault } from '../../platform/vault.ts';
import { createArchiveThreads } from './archiveThreads.ts';

export type Archives = ReturnType<typeof createArchives>;
export type Stores = Readonly<Partial<Record<StoreKind, ArchiveStore>>>;

/** Binds a sealed key to its archive: it cannot be opened for another one. */
const keyContext = (backupId: string) => `backup:${backupId}`;

/**
 * Opens the sealed keys of archives with the master keys. Errors: `ArchiveError` with
 * `master_key_missing` or `archive_damaged`.
 */
export const unsealWith =
  (vault: Vault): Unseal =>
  ({ backupId, key }) => {
    const name = JSON.stringify(key.id.slice(0, 32));
    let opened: string;
    try {
      opened = vault.open(key.sealed, keyContext(backupId));
    } catch {
      if (!vault.has(key.id))
        throw new ArchiveError(
          'master_key_missing',
          `The archive is encrypted with the master key ${name}, which is not in ` +
            'HOLDFAST_MASTER_KEYS (for the embedded stack: master.key).',
        );
      throw new ArchiveError(
        'master_key_missing',
        `The configured master key ${name} does not open the archive: it is another key of this ` +
          'name, or the header of the archive is damaged.',
      );
    }
    const bytes = Buffer.from(opened, 'base64');
    if (bytes.length !== 32)
      throw new ArchiveError(
        'archive_damaged',
        'The archive is damaged: its key has the wrong length.',
      );
    return bytes;
  };

/** Where new archives are stored, the name of the key that encrypts them, and what is not set up. */
export type ArchiveTarget = {
  store: StoreKind | null;
  masterKey: string | null;
  problems: AppError[];
};

const noStore = () =>
  new AppError(
    'not_supported',
    'No archive store is configured: set HOLDFAST_BACKUP_DIR or HOLDFAST_BACKUP_S3_BUCKET.',
  );
const noMasterKey = () =>
  new AppError(
    'master_key_missing',
    'HOLDFAST_MASTER_KEYS is not set; archives cannot be encrypted.',
  );

/** The archives in the configured stores. `current` is the store of new archives. */
export function createArchives({
  stores,
  current,
  vault,
}: {
  stores: Stores;
  current: StoreKind | undefined;
  vault: Vault;
}) {
  const unseal = unsealWith(vault);
  const threads = createArchiveThreads();

  /** The store of an archive. Error: `StoreError` when it is not configured. */
  function storeOf({ store }: Pick<Backup, 'store'>): ArchiveStore {
    const configured = stores[store];
    if (!configured)
      throw new StoreError(
        'store_refused',
        `The ${store} store is not configured in this process.`,
        false,
      );
    return configured;
  }

  function target(): ArchiveTarget {
    const masterKey = vault.currentKeyId();
    const problems = [
      ...(current === undefined ? [noStore()] : []),
      ...(masterKey === undefined ? [noMasterKey()] : []),
    ];
    return { store: current ?? null, masterKey: masterKey ?? null, problems };
  }

  return {
    storeOf,

    /** Why an archive cannot be reached with the present configuration; null if it can. */
    storeProblemOf: ({ store }: Pick<Backup, 'store'>): string | null =>
      stores[store]
        ? null
        : `Its archive is in the ${store} store, which is no longer configured. Configure it again.`,

    /** Where new archives would be stored and with which master key; what is missing for it. */
    target,

    /** The store of new archives. Errors: `not_supported`, `master_key_missing`. */
    targetStore(): StoreKind {
      const { store, problems } = target();
      if (problems[0]) throw problems[0];
      return assertDefined(store, 'store of archives');
    },

    /** All configured stores. */
    listStores: (): ArchiveStore[] => Object.values(stores),

    /** A new key for one archive, and the sealed key that its header stores. */
    newKey(backupId: string): { key: Buffer; sealedKey: ArchiveHeader['key'] } {
      const key = randomBytes(32);
      return {
        key,
        sealedKey: {
          id: assertDefined(vault.currentKeyId(), 'vault.currentKeyId'),
          sealed: vault.seal(key.toString('base64'), keyContext(backupId)),
        },
      };
    },

    /** Writes the archive of a snapshot to an upload, in another thread. */
    write: threads.write,

    /**
     * Reads all of an archive from its store, and returns its manifest if it is complete. Errors:
     * `StoreError`, `ArchiveError`.
     */
    verify: (
      backup: Pick<Backup, 'store' | 'archive'>,
      signal: AbortSignal,
    ): Promise<ArchiveManifest> =>
      withHeader(storeOf(backup).read(backup.archive), (header, bytes) =>
        threads.verify(bytes, { key: unseal(header), signal }),
      ),

    /** Reads and verifies an archive. Errors: `StoreError`, `ArchiveError`. */
    read: (backup: Pick<Backup, 'store' | 'archive'>): AsyncGenerator<ArchivePart> =>
      readArchive(storeOf(backup).read(backup.archive), unseal),

    async close(): Promise<void> {
      await threads.close();
      Object.values(stores).forEach((store) => store.close());
    },
  };
}

/** Translates errors of reading or writing an archive to failures of the job. */
export function asJobFailure(error: unknown): unknown {
  if (error instanceof StoreError)
    return new JobFailure(error.code, error.message, { retryable: error.transient });
  if (error instanceof ArchiveError)
    return new JobFailure(error.code, error.message, { retryable: false });
  if (error instanceof StagingBusy)
    return new JobFailure('busy', error.message, { retryAfterMs: 5_000 });
  if (error instanceof ArchiveTooNew)
    return new JobFailure('schema_too_new', error.message, { retryable: false });
  // What this installation cannot do now, the step tries again.
  if (isBusyError(error)) return error;
  if (error instanceof AppError)
    return new JobFailure(error.code, error.message, { retryable: false });
  return error;
}
