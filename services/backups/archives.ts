import { randomBytes } from 'node:crypto';
import { SchemaNewer, ScratchBusy } from '../../db/backups/scratch.ts';
import type { Backup } from '../../db/models/Backup.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { JobFailure } from '../../domain/jobType.ts';
import {
  ArchiveError,
  readArchive,
  type ArchiveHeader,
  type ArchivePart,
  type Unseal,
} from '../../platform/archive/index.ts';
import { StoreError, type ArchiveStore, type StoreKind } from '../../platform/stores/store.ts';
import type { Vault } from '../../platform/vault.ts';

export type Archives = ReturnType<typeof createArchives>;
export type Stores = Readonly<Partial<Record<StoreKind, ArchiveStore>>>;

/** Names where a key belongs: in another archive it does not open. */
const contextOf = (backupId: string) => `backup:${backupId}`;

/** Opens the key of an archive with the master keys. */
export const unsealWith =
  (vault: Vault): Unseal =>
  ({ backupId, key }) => {
    const name = JSON.stringify(key.id.slice(0, 32));
    let opened: string;
    try {
      opened = vault.open(key.sealed, contextOf(backupId));
    } catch (error) {
      if (error instanceof AppError)
        throw new ArchiveError(
          'master_key_missing',
          `The archive is sealed under the master key ${name}, which HOLDFAST_MASTER_KEYS (of the embedded stack: master.key) does not have.`,
        );
      throw new ArchiveError(
        'master_key_missing',
        `The master key ${name} that is here does not open the archive: it is another key of this name than the one that sealed it, or the head of the archive is damaged.`,
      );
    }
    const bytes = Buffer.from(opened, 'base64');
    if (bytes.length !== 32)
      throw new ArchiveError(
        'archive_damaged',
        'The archive is damaged: its key has another length.',
      );
    return bytes;
  };

/** Where archives are, and how they are sealed. */
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

  /** The store of an archive. Error: `StoreError` where it is not configured any more. */
  function storeOf({ store }: Pick<Backup, 'store'>): ArchiveStore {
    const found = stores[store];
    if (!found)
      throw new StoreError(
        'store_refused',
        `This process is not told where the ${store} store is.`,
        false,
      );
    return found;
  }

  return {
    storeOf,

    /** Where new archives go. Errors: `not_supported`, `master_key_missing`. */
    target(): StoreKind {
      if (current === undefined)
        throw new AppError(
          'not_supported',
          'There is no place for backups: set HOLDFAST_BACKUP_DIR or HOLDFAST_BACKUP_S3_BUCKET.',
        );
      if (vault.currentId() === undefined)
        throw new AppError(
          'master_key_missing',
          'HOLDFAST_MASTER_KEYS is not set, so no archive can be sealed.',
        );
      return current;
    },

    /** Every store that is configured. */
    all: (): ArchiveStore[] => Object.values(stores),

    /** A new key for one archive, and how the archive carries it. */
    newKey(backupId: string): { key: Buffer; carried: ArchiveHeader['key'] } {
      const key = randomBytes(32);
      return {
        key,
        carried: {
          id: vault.currentId() ?? '',
          sealed: vault.seal(key.toString('base64'), contextOf(backupId)),
        },
      };
    },

    /** Reads an archive from its first byte to its last. Errors: `StoreError`, `ArchiveError`. */
    read: (backup: Pick<Backup, 'store' | 'archive'>): AsyncGenerator<ArchivePart> =>
      readArchive(storeOf(backup).read(backup.archive), unseal),

    close: (): void => Object.values(stores).forEach((store) => store.close()),
  };
}

/** The failure of a step that reads or writes an archive, as its job tells it; other errors as they are. */
export function asJobFailure(error: unknown): unknown {
  if (error instanceof StoreError)
    return new JobFailure(error.code, error.message, { retryable: error.transient });
  if (error instanceof ArchiveError)
    return new JobFailure(error.code, error.message, { retryable: false });
  if (error instanceof ScratchBusy)
    return new JobFailure('busy', error.message, { retryAfterMs: 5_000 });
  if (error instanceof SchemaNewer)
    return new JobFailure('schema_newer', error.message, { retryable: false });
  if (error instanceof AppError)
    return new JobFailure(error.code, error.message, { retryable: false });
  return error;
}
