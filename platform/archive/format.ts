import { createHash, hash } from 'node:crypto';

/**
 * The archive of a backup, format 1 (docs/archive-format.md). An unencrypted preamble describes the
 * rest. The frames after it are compressed with zstd (RFC 8878) and encrypted with AES-256-GCM,
 * with a key that only this archive uses. The last frame is the manifest. The nonce of a frame is
 * its number; its head and the hash of the preamble are authenticated. So a frame that was
 * modified, moved, repeated, omitted or taken from another archive does not decrypt.
 */
export const MAGIC = Buffer.from('HOLDFAST');
export const FORMAT = 1;

/** Maximum size of the rows in a frame, before compression. */
export const FRAME_BYTES = 1 << 20;
/** Maximum size of an encrypted frame. A larger one is rejected before it is read. */
export const MAX_SEALED_BYTES = 2 * FRAME_BYTES;
export const MAX_HEADER_BYTES = 1 << 20;

/** Magic, format version, length of the header. */
export const PREAMBLE_BYTES = MAGIC.length + 2 + 4;
/** Kind, table, number, length of the encrypted part. */
export const FRAME_HEAD_BYTES = 1 + 2 + 4 + 4;
export const TAG_BYTES = 16;

export type FrameKind = 'rows' | 'manifest';
const KINDS: readonly FrameKind[] = ['rows', 'manifest'];

/** Format of rows: `snapshot` is PostgreSQL's COPY text, `portable` one JSON object per line. */
export type Engine = 'snapshot' | 'portable';

/** A table in an archive. Generated columns are not among `columns`. */
export type ArchivedTable = { section: string; name: string; columns: string[] };

/** The unencrypted description of an archive. It has no data of records. */
export type ArchiveHeader = {
  backupId: string;
  tenantId: string;
  engine: Engine;
  /** Name of the last migration of the database that was backed up. */
  schemaVersion: string;
  appVersion: string;
  createdAt: string;
  mode: 'full' | 'partial';
  /** The requested sections. */
  sections: string[];
  /** Sections that are included because the requested ones refer to them. */
  includes: string[];
  tables: ArchivedTable[];
  /** Only of a part of an audit chain: its first and last position, and the hashes that it links. */
  auditSegment?: { first: number; last: number; previousHash: string; hash: string };
  /** The key of the frames, encrypted with the master key `id`. */
  key: { id: string; sealed: string };
};

export type TableSummary = {
  section: string;
  name: string;
  rows: number;
  bytes: number;
  sha256: string;
};

/** Contents of an archive, written at its end. */
export type ArchiveManifest = {
  backupId: string;
  tables: TableSummary[];
  sections: { name: string; rows: number; sha256: string }[];
  rows: number;
  /** Number of frames before the manifest. */
  frames: number;
};

export type ArchiveErrorCode =
  | 'not_an_archive'
  | 'format_too_new'
  | 'archive_damaged'
  | 'archive_truncated'
  | 'master_key_missing';

/** Why an archive cannot be read. */
export class ArchiveError extends Error {
  readonly code: ArchiveErrorCode;

  constructor(code: ArchiveErrorCode, message: string) {
    super(message);
    this.name = 'ArchiveError';
    this.code = code;
  }
}

/** Returns the preamble: magic, format, length of the header, header. */
export function writePreamble(header: ArchiveHeader): Buffer {
  const json = Buffer.from(JSON.stringify(header));
  const fixed = Buffer.alloc(PREAMBLE_BYTES);
  MAGIC.copy(fixed);
  fixed.writeUInt16BE(FORMAT, MAGIC.length);
  fixed.writeUInt32BE(json.length, MAGIC.length + 2);
  return Buffer.concat([fixed, json]);
}

/** Returns the length of the header, from the fixed part of the preamble. Error: `ArchiveError`. */
export function headerLength(fixed: Buffer): number {
  if (!fixed.subarray(0, MAGIC.length).equals(MAGIC))
    throw new ArchiveError('not_an_archive', 'This is not a Holdfast archive.');
  const format = fixed.readUInt16BE(MAGIC.length);
  if (format > FORMAT)
    throw new ArchiveError(
      'format_too_new',
      `The archive has format ${format}; this version reads up to ${FORMAT}.`,
    );
  const length = fixed.readUInt32BE(MAGIC.length + 2);
  if (format < 1 || length === 0 || length > MAX_HEADER_BYTES)
    throw new ArchiveError('archive_damaged', 'The head of the archive is damaged.');
  return length;
}

export type FrameHead = { kind: FrameKind; table: number; number: number; sealedBytes: number };

/** Returns the head of a frame. */
export function writeFrameHead({ kind, table, number, sealedBytes }: FrameHead): Buffer {
  const head = Buffer.alloc(FRAME_HEAD_BYTES);
  head.writeUInt8(KINDS.indexOf(kind) + 1, 0);
  head.writeUInt16BE(table, 1);
  head.writeUInt32BE(number, 3);
  head.writeUInt32BE(sealedBytes, 7);
  return head;
}

/** Parses the head of a frame. Error: `archive_damaged`. */
export function readFrameHead(head: Buffer): FrameHead {
  const kind = KINDS[head.readUInt8(0) - 1];
  const frame = {
    table: head.readUInt16BE(1),
    number: head.readUInt32BE(3),
    sealedBytes: head.readUInt32BE(7),
  };
  if (!kind || frame.sealedBytes <= TAG_BYTES || frame.sealedBytes > MAX_SEALED_BYTES)
    throw new ArchiveError('archive_damaged', 'The head of a frame is damaged.');
  return { kind, ...frame };
}

/** Returns the nonce of a frame. A key never encrypts two frames with the same number. */
export function frameNonce(number: number): Buffer {
  const nonce = Buffer.alloc(12);
  nonce.writeUInt32BE(number, 8);
  return nonce;
}

/** Returns the data that is authenticated with a frame: its archive and its head. */
export const additionalDataOf = (preambleHash: Buffer, head: Buffer): Buffer =>
  Buffer.concat([preambleHash, head]);

const NEWLINE = 0x0a;

/** Counts the rows in a part of a table, one per line. */
export function countLines(bytes: Buffer): number {
  let lines = 0;
  for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, at + 1)) lines += 1;
  return lines;
}

/** SHA-256. */
export const hashOf = (bytes: Uint8Array): Buffer => hash('sha256', bytes, 'buffer');

/** Returns the hash of a section: SHA-256 of the names and hashes of its tables, in order. */
export const sectionHash = (tables: readonly TableSummary[]): string =>
  createHash('sha256')
    .update(tables.map(({ name, sha256 }) => `${name} ${sha256}\n`).join(''))
    .digest('hex');
