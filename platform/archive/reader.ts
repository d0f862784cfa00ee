import { createDecipheriv, createHash, type Hash } from 'node:crypto';
import { promisify } from 'node:util';
import { constants, zstdDecompress } from 'node:zlib';
import {
  ArchiveError,
  additionalDataOf,
  countLines,
  FRAME_BYTES,
  FRAME_HEAD_BYTES,
  hashOf,
  headerLength,
  frameNonce,
  PREAMBLE_BYTES,
  readFrameHead,
  sectionHash,
  TAG_BYTES,
  type ArchiveHeader,
  type ArchiveManifest,
  type FrameHead,
  type TableSummary,
} from './format.ts';
import { mapInOrder } from './inOrder.ts';

const decompress = promisify(zstdDecompress);
const CONCURRENCY = 4;

/**
 * Decrypts the key of the frames. Error: `ArchiveError` (`master_key_missing`, `archive_damaged`).
 */
export type Unseal = (header: ArchiveHeader) => Buffer;

/**
 * The parts of an archive in the order in which they are read: the header; the authenticated rows,
 * table by table, in chunks; the manifest, once the archive is known to be complete.
 */
export type ArchivePart =
  | { kind: 'header'; header: ArchiveHeader }
  | { kind: 'rows'; table: number; bytes: Buffer }
  | { kind: 'manifest'; manifest: ArchiveManifest };

const damagedError = (what: string) =>
  new ArchiveError('archive_damaged', `The archive is damaged: ${what}.`);

/** Reads a stream in chunks of requested sizes. */
function createByteReader(source: AsyncIterable<Uint8Array>) {
  const iterator = source[Symbol.asyncIterator]();
  let [chunks, bufferedBytes]: [Buffer[], number] = [[], 0];

  async function fill(bytes: number): Promise<void> {
    while (bufferedBytes < bytes) {
      const next = await iterator.next();
      if (next.done) return;
      chunks.push(Buffer.from(next.value));
      bufferedBytes += next.value.length;
    }
  }

  return {
    /** Reads exactly `bytes` bytes. Error: `archive_truncated`. */
    async read(bytes: number): Promise<Buffer> {
      await fill(bytes);
      if (bufferedBytes < bytes)
        throw new ArchiveError('archive_truncated', 'The archive ends too early.');
      const all = chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks);
      [chunks, bufferedBytes] = [[all.subarray(bytes)], bufferedBytes - bytes];
      return all.subarray(0, bytes);
    },
    /** Resolves to true if the stream has no more bytes. */
    async isAtEnd(): Promise<boolean> {
      await fill(1);
      return bufferedBytes === 0;
    },
    /** Returns what is left of the stream. */
    async *rest(): AsyncGenerator<Uint8Array> {
      yield* chunks;
      for (let next = await iterator.next(); !next.done; next = await iterator.next())
        yield next.value;
    },
    close: async (): Promise<void> => void (await iterator.return?.()),
  };
}

type ByteReader = ReturnType<typeof createByteReader>;
type SealedFrame = { head: FrameHead; headBytes: Buffer; sealed: Buffer };

/**
 * Reads the encrypted frames up to the manifest. Errors: `archive_damaged`, `archive_truncated`.
 */
async function* sealedFrames(reader: ByteReader): AsyncGenerator<SealedFrame> {
  for (let number = 0; ; number++) {
    const headBytes = await reader.read(FRAME_HEAD_BYTES);
    const head = readFrameHead(headBytes);
    if (head.number !== number)
      throw damagedError(`it has frame ${head.number} in the position of frame ${number}`);
    yield { head, headBytes, sealed: await reader.read(head.sealedBytes) };
    if (head.kind === 'manifest') return;
  }
}

/**
 * Typical upper bound of the compression ratio. It sizes the output buffer: each further buffer
 * costs a round trip to the thread pool.
 */
const EXPANSION_RATIO = 16;
const outputChunkSize = ({ length }: Buffer): number =>
  Math.min(FRAME_BYTES, Math.max(constants.Z_DEFAULT_CHUNK, EXPANSION_RATIO * length));

async function decryptFrame(
  key: Buffer,
  preambleHash: Buffer,
  { head, headBytes, sealed }: SealedFrame,
): Promise<{ head: FrameHead; bytes: Buffer }> {
  const decipher = createDecipheriv('aes-256-gcm', key, frameNonce(head.number), {
    authTagLength: TAG_BYTES,
  });
  decipher
    .setAAD(additionalDataOf(preambleHash, headBytes))
    .setAuthTag(sealed.subarray(-TAG_BYTES));
  let compressed: Buffer;
  try {
    compressed = Buffer.concat([decipher.update(sealed.subarray(0, -TAG_BYTES)), decipher.final()]);
  } catch {
    throw damagedError(`frame ${head.number} cannot be decrypted`);
  }
  // The data is authentic; the limit guards against archives that a holder of the key has forged.
  const bytes = await decompress(compressed, {
    maxOutputLength: FRAME_BYTES,
    chunkSize: outputChunkSize(compressed),
  }).catch(() => {
    throw damagedError(`frame ${head.number} cannot be decompressed`);
  });
  return { head, bytes };
}

const isString = (value: unknown): value is string => typeof value === 'string';
const areStrings = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every(isString);

/** Names of tables and columns, which become part of SQL statements. */
const IDENTIFIER = /^[a-z][a-z0-9_]{0,62}$/;

function isHeader(value: unknown): value is ArchiveHeader {
  if (typeof value !== 'object' || value === null) return false;
  const {
    backupId,
    tenantId,
    engine,
    schemaVersion,
    appVersion,
    createdAt,
    mode,
    sections,
    includes,
    tables,
    key,
  } = value as Record<string, unknown>;
  if (
    ![backupId, tenantId, schemaVersion, appVersion, createdAt].every(isString) ||
    !areStrings(sections) ||
    !areStrings(includes)
  )
    return false;
  if ((engine !== 'snapshot' && engine !== 'portable') || (mode !== 'full' && mode !== 'partial'))
    return false;
  const { id, sealed } = (key ?? {}) as Record<string, unknown>;
  if (!isString(id) || !isString(sealed) || !Array.isArray(tables)) return false;
  return tables.every((table: unknown) => {
    const { section, name, columns } = (table ?? {}) as Record<string, unknown>;
    return (
      isString(section) &&
      isString(name) &&
      IDENTIFIER.test(name) &&
      areStrings(columns) &&
      columns.every((column) => IDENTIFIER.test(column))
    );
  });
}

function parseHeader(bytes: Buffer): ArchiveHeader {
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString('utf8'));
  } catch {
    throw damagedError('its header is not JSON');
  }
  if (!isHeader(value)) throw damagedError('its header is not complete');
  return value;
}

/** Counts and hashes the rows that are read, to be compared with the manifest. */
function createTally(header: ArchiveHeader, withHashes: boolean) {
  const totals: { rows: number; bytes: number; hash: Hash }[] = header.tables.map(() => ({
    rows: 0,
    bytes: 0,
    hash: createHash('sha256'),
  }));
  return {
    add(table: number, bytes: Buffer): void {
      const entry = totals[table];
      if (!entry) throw damagedError(`its header has no table ${table}`);
      entry.bytes += bytes.length;
      if (!withHashes) return;
      entry.rows += countLines(bytes);
      entry.hash.update(bytes);
    },
    /** What was found; without hashes, with the rows and hashes of the manifest. */
    summaries: (listed: readonly TableSummary[]): TableSummary[] =>
      header.tables.map(({ section, name }, at) => {
        const { rows, bytes, hash } = totals[at] ?? { rows: 0, bytes: 0 };
        const counted = withHashes ? { rows, sha256: hash?.digest('hex') } : listed[at];
        return { section, name, rows: counted?.rows ?? 0, bytes, sha256: counted?.sha256 ?? '' };
      }),
  };
}

function checkManifest(
  manifest: ArchiveManifest,
  header: ArchiveHeader,
  found: readonly TableSummary[],
  frames: number,
): void {
  if (manifest.backupId !== header.backupId)
    throw damagedError('its manifest belongs to another archive');
  if (manifest.frames !== frames)
    throw damagedError(`its manifest lists ${manifest.frames} frames, but it has ${frames}`);
  if (JSON.stringify(manifest.tables) !== JSON.stringify(found))
    throw damagedError('its rows do not match its manifest');
  for (const { name, sha256 } of manifest.sections) {
    if (sectionHash(found.filter(({ section }) => section === name)) !== sha256)
      throw damagedError(`section ${name} does not match its manifest`);
  }
}

/**
 * Reads a whole archive. Every part is authentic when it is yielded; the archive is complete when
 * the manifest is yielded. Without `withHashes`, the rows are not compared with the hashes of the
 * manifest: their frames are authentic, complete and in order, which proves as much about an archive
 * that was not forged by a holder of its key. Error: `ArchiveError`, for any input.
 */
export async function* readArchive(
  source: AsyncIterable<Uint8Array>,
  unseal: Unseal,
  { withHashes = true }: { withHashes?: boolean } = {},
): AsyncGenerator<ArchivePart> {
  const reader = createByteReader(source);
  try {
    const { preamble, header } = await readPreamble(reader);
    const key = unseal(header);
    yield { kind: 'header', header };
    const preambleHash = hashOf(preamble);
    const tally = createTally(header, withHashes);
    let [frames, table] = [0, 0];
    for await (const { head, bytes } of mapInOrder(sealedFrames(reader), CONCURRENCY, (frame) =>
      decryptFrame(key, preambleHash, frame),
    )) {
      if (head.kind === 'manifest') {
        if (!(await reader.isAtEnd())) throw damagedError('there is something behind its end');
        const manifest = JSON.parse(bytes.toString('utf8')) as ArchiveManifest;
        checkManifest(manifest, header, tally.summaries(manifest.tables), frames);
        yield { kind: 'manifest', manifest };
        return;
      }
      if (head.table < table) throw damagedError('its tables are out of order');
      [table, frames] = [head.table, frames + 1];
      tally.add(table, bytes);
      yield { kind: 'rows', table, bytes };
    }
  } finally {
    await reader.close();
  }
}

async function readPreamble(
  reader: ByteReader,
): Promise<{ preamble: Buffer; header: ArchiveHeader }> {
  const fixed = await reader.read(PREAMBLE_BYTES);
  const headerText = await reader.read(headerLength(fixed));
  return { preamble: Buffer.concat([fixed, headerText]), header: parseHeader(headerText) };
}

/** The header of an archive, which needs no key. Errors: `ArchiveError`. */
export async function readHeader(source: AsyncIterable<Uint8Array>): Promise<ArchiveHeader> {
  const reader = createByteReader(source);
  try {
    return (await readPreamble(reader)).header;
  } finally {
    await reader.close();
  }
}

/**
 * Calls `use` with the header of an archive and all of its bytes, the header included. Errors:
 * `ArchiveError`, and those of `use`.
 */
export async function withHeader<T>(
  source: AsyncIterable<Uint8Array>,
  use: (header: ArchiveHeader, bytes: AsyncIterable<Uint8Array>) => Promise<T>,
): Promise<T> {
  const reader = createByteReader(source);
  try {
    const { preamble, header } = await readPreamble(reader);
    return await use(header, bytesAfter(preamble, reader));
  } finally {
    await reader.close();
  }
}

async function* bytesAfter(first: Buffer, reader: ByteReader): AsyncGenerator<Uint8Array> {
  yield first;
  yield* reader.rest();
}
