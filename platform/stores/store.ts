/**
 * A complete upload that is not an archive yet; `finalize` needs it. The backup record has a copy.
 */
export type PendingUpload =
  | { kind: 'folder'; part: string; sizeBytes: number }
  | { kind: 's3'; uploadId: string; etags: string[]; sizeBytes: number };

export type StoreKind = PendingUpload['kind'];

export type ArchiveUpload = {
  /** Resolves when the store accepts more data. */
  write(bytes: Buffer): Promise<void>;
  /** Makes the upload durable. It is not an archive until `finalize`. */
  finish(): Promise<PendingUpload>;
  /** Discards the upload. */
  abort(): Promise<void>;
};

export type StoredArchive = { name: string; sizeBytes: number; modifiedAt: Date };

export type RemoveOptions = {
  /** The name had one upload only: if it has become an archive, the store need not search for others. */
  uploadedOnce?: boolean;
  /** Ends requests to the store. */
  signal?: AbortSignal;
};

/**
 * A store of archives. An archive appears under its name when it is complete. Error: `StoreError`.
 */
export type ArchiveStore = {
  kind: StoreKind;
  startUpload(name: string): Promise<ArchiveUpload>;
  /** Turns an upload into an archive. Idempotent. */
  finalize(name: string, pending: PendingUpload): Promise<void>;
  /** Reads an archive. Error: `archive_missing`. */
  read(name: string): AsyncIterable<Uint8Array>;
  /** Size of an archive in bytes; null if it does not exist. */
  sizeOf(name: string): Promise<number | null>;
  /** Removes an archive and the uploads of its name, if they exist. */
  remove(name: string, options?: RemoveOptions): Promise<void>;
  /** Removes the uploads of a name that were not finalized. */
  abortUploads(name: string): Promise<void>;
  /** Names of archives with uploads that were not finalized; also those of other installations. */
  listUnfinished(): Promise<string[]>;
  /** Lists the archives. */
  list(): AsyncIterable<StoredArchive>;
  /** Closes connections. */
  close(): void;
};

export type StoreErrorCode =
  'archive_missing' | 'store_unavailable' | 'store_refused' | 'store_full';

/** A failed operation of a store. `transient`: it may succeed later. */
export class StoreError extends Error {
  readonly code: StoreErrorCode;
  readonly transient: boolean;

  constructor(code: StoreErrorCode, message: string, transient: boolean) {
    super(message);
    this.name = 'StoreError';
    this.code = code;
    this.transient = transient;
  }
}

/** File extension of archives. */
export const ARCHIVE_SUFFIX = '.hfb';
export const archiveName = (backupId: string): string => `${backupId}${ARCHIVE_SUFFIX}`;

const SAFE_NAME = /^[A-Za-z0-9_.-]{1,200}$/;

const isSafe = (name: string): boolean => SAFE_NAME.test(name) && !name.startsWith('.');

/** Whether an archive can have this name: a store may also contain files of other programs. */
export const isArchiveName = (name: string): boolean =>
  isSafe(name) && name.endsWith(ARCHIVE_SUFFIX);

/** Returns `name` if it cannot escape the store, such as by `..`. Error: `archive_missing`. */
export function checkedName(name: string): string {
  if (isSafe(name)) return name;
  throw new StoreError('archive_missing', 'No archive has this name.', false);
}
