import { createHash } from 'node:crypto';

/**
 * The archive of a backup, format 1 (docs/archive-format.md). A preamble in the clear says how to read the rest; after it
 * come frames, each compressed with zstd (RFC 8878) and sealed with AES-256-GCM under a key of this archive alone. The
 * last frame is the manifest. The nonce of a frame is its number, and its head and the hash of the preamble go into
 * the seal: a frame that is changed, moved, repeated, left out or of another archive does not open.
 */
export const MAGIC = Buffer.from('HOLDFAST');
export const FORMAT = 1;

/** Bytes of rows in a frame, before they are compressed. */
export const FRAME_BYTES = 1 << 20;
/** What is longer was not written by us, and is not read into memory. */
export const MAX_SEALED_BYTES = 2 * FRAME_BYTES;
export const MAX_HEADER_BYTES = 1 << 20;

/** Magic, format version, length of the header. */
export const PREAMBLE_BYTES = MAGIC.length + 2 + 4;
/** Kind, table, number, length of what is sealed. */
export const FRAME_HEAD_BYTES = 1 + 2 + 4 + 4;
export const TAG_BYTES = 16;

export type FrameKind = 'rows' | 'manifest';
const KINDS: readonly FrameKind[] = ['rows', 'manifest'];

/** How rows are written: PostgreSQL's COPY text, or one JSON object a line. */
export type Engine = 'snapshot' | 'portable';

/** A table in an archive; columns that PostgreSQL works out are not among its columns. */
export type ArchivedTable = { section: string; name: string; columns: string[] };

/** In the clear, so that it can be read without the key; it holds nothing of the records. */
export type ArchiveHeader = {
  backupId: string;
  tenantId: string;
  engine: Engine;
  /** The last migration of the schema from which the rows come. */
  schemaVersion: string;
  appVersion: string;
  createdAt: string;
  mode: 'full' | 'partial';
  /** The sections that were asked for, and those that came along because they are referred to. */
  sections: string[];
  includes: string[];
  tables: ArchivedTable[];
  /** The key of the frames, sealed under the master key `id`. */
  key: { id: string; sealed: string };
};

export type TableSummary = {
  section: string;
  name: string;
  rows: number;
  bytes: number;
  sha256: string;
};

/** What is in the archive, known when all of it is written. */
export type ArchiveManifest = {
  backupId: string;
  tables: TableSummary[];
  sections: { name: string; rows: number; sha256: string }[];
  rows: number;
  /** Frames before this one. */
  frames: number;
};

export type ArchiveErrorCode =
  'not_an_archive' | 'format_newer' | 'archive_damaged' | 'archive_cut_off' | 'master_key_missing';

/** Why an archive cannot be read. */
export class ArchiveError extends Error {
  readonly code: ArchiveErrorCode;

  constructor(code: ArchiveErrorCode, message: string) {
    super(message);
    this.name = 'ArchiveError';
    this.code = code;
  }
}

/** The first bytes of an archive. */
export function writePreamble(header: ArchiveHeader): Buffer {
  const json = Buffer.from(JSON.stringify(header));
  const fixed = Buffer.alloc(PREAMBLE_BYTES);
  MAGIC.copy(fixed);
  fixed.writeUInt16BE(FORMAT, MAGIC.length);
  fixed.writeUInt32BE(json.length, MAGIC.length + 2);
  return Buffer.concat([fixed, json]);
}

/** The length of the header, from the fixed part of a preamble. Errors: `ArchiveError`. */
export function headerBytes(fixed: Buffer): number {
  if (!fixed.subarray(0, MAGIC.length).equals(MAGIC))
    throw new ArchiveError('not_an_archive', 'This is not an archive of Holdfast.');
  const format = fixed.readUInt16BE(MAGIC.length);
  if (format > FORMAT)
    throw new ArchiveError(
      'format_newer',
      `The archive has format ${format}; this version reads up to ${FORMAT}.`,
    );
  const length = fixed.readUInt32BE(MAGIC.length + 2);
  if (format < 1 || length === 0 || length > MAX_HEADER_BYTES)
    throw new ArchiveError('archive_damaged', 'The head of the archive is damaged.');
  return length;
}

export type FrameHead = { kind: FrameKind; table: number; number: number; sealedBytes: number };

export function writeFrameHead({ kind, table, number, sealedBytes }: FrameHead): Buffer {
  const head = Buffer.alloc(FRAME_HEAD_BYTES);
  head.writeUInt8(KINDS.indexOf(kind) + 1, 0);
  head.writeUInt16BE(table, 1);
  head.writeUInt32BE(number, 3);
  head.writeUInt32BE(sealedBytes, 7);
  return head;
}

/** Error: `archive_damaged`. */
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

/** The nonce of a frame: no key seals two frames of one number. */
export function nonceOf(number: number): Buffer {
  const nonce = Buffer.alloc(12);
  nonce.writeUInt32BE(number, 8);
  return nonce;
}

/** What a frame is bound to: its archive and its place in it. */
export const bindingOf = (preambleHash: Buffer, head: Buffer): Buffer =>
  Buffer.concat([preambleHash, head]);

const NEWLINE = 0x0a;

/** How many rows there are in a piece of a table, a line each. */
export function countLines(bytes: Buffer): number {
  let lines = 0;
  for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, at + 1)) lines += 1;
  return lines;
}

export const hashOf = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest();

/** The hash of a section: of the names and hashes of its tables, in their order. */
export const sectionHash = (tables: readonly TableSummary[]): string =>
  createHash('sha256')
    .update(tables.map(({ name, sha256 }) => `${name} ${sha256}\n`).join(''))
    .digest('hex');
