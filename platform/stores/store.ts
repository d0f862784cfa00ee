/** An archive that is written and not yet there; what a store needs to make it one. Kept in the record of the backup. */
export type Pending =
  | { kind: 'folder'; part: string; sizeBytes: number }
  | { kind: 's3'; uploadId: string; etags: string[]; sizeBytes: number };

export type StoreKind = Pending['kind'];

export type ArchiveUpload = {
  /** Resolves when there is room for more. */
  write(bytes: Buffer): Promise<void>;
  /** All is written and will survive a crash; it is no archive yet. */
  finish(): Promise<Pending>;
  /** Forgets what was written. */
  abort(): Promise<void>;
};

export type StoredArchive = { name: string; sizeBytes: number; modifiedAt: Date };

/** Where archives are kept. A name is an archive from `seal` on, and never half of one. Errors: `StoreError`. */
export type ArchiveStore = {
  kind: StoreKind;
  begin(name: string): Promise<ArchiveUpload>;
  /** Makes an archive of what was written. Done twice it is the same as once. */
  seal(name: string, pending: Pending): Promise<void>;
  /** The bytes of an archive. Error: `archive_missing`. */
  read(name: string): AsyncIterable<Uint8Array>;
  /** Bytes of an archive, or null when there is none. */
  sizeOf(name: string): Promise<number | null>;
  /** Removes an archive, and whatever was begun under its name. What is gone already is no error. */
  remove(name: string): Promise<void>;
  /** Removes what was begun under a name and is no archive. */
  clear(name: string): Promise<void>;
  /** Names under which something was begun. */
  unfinished(): Promise<string[]>;
  /** Archives that are there, by name. */
  list(): AsyncIterable<StoredArchive>;
  /** Ends connections. */
  close(): void;
};

export type StoreErrorCode =
  'archive_missing' | 'store_unavailable' | 'store_refused' | 'store_full';

/** Why a store could not do it. `transient`: the same may succeed later. */
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

/** How names of archives end. */
export const ARCHIVE_SUFFIX = '.hfb';
export const archiveName = (backupId: string): string => `${backupId}${ARCHIVE_SUFFIX}`;

const SAFE_NAME = /^[A-Za-z0-9_.-]{1,200}$/;

/** A name that leads nowhere else than into the store. */
export function safeName(name: string): string {
  if (SAFE_NAME.test(name) && !name.startsWith('.')) return name;
  throw new StoreError('archive_missing', 'There is no archive of that name.', false);
}
