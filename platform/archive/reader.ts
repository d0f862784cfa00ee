import { createDecipheriv, createHash, type Hash } from 'node:crypto';
import { promisify } from 'node:util';
import { constants, zstdDecompress } from 'node:zlib';
import {
  ArchiveError,
  bindingOf,
  countLines,
  FRAME_BYTES,
  FRAME_HEAD_BYTES,
  hashOf,
  headerBytes,
  nonceOf,
  PREAMBLE_BYTES,
  readFrameHead,
  sectionHash,
  TAG_BYTES,
  type ArchiveHeader,
  type ArchiveManifest,
  type FrameHead,
  type TableSummary,
} from './format.ts';
import { inOrder } from './inOrder.ts';

const decompress = promisify(zstdDecompress);
const AT_ONCE = 4;

/** Gives the key of an archive's frames. Error: `ArchiveError` with `master_key_missing` or `archive_damaged`. */
export type Unseal = (header: ArchiveHeader) => Buffer;

/**
 * What reading an archive gives, in this order: its header; its rows, which have been authenticated, piece by piece and table
 * by table; its manifest, when all of it was there and is what was written.
 */
export type ArchivePart =
  | { kind: 'header'; header: ArchiveHeader }
  | { kind: 'rows'; table: number; bytes: Buffer }
  | { kind: 'manifest'; manifest: ArchiveManifest };

const damaged = (what: string) =>
  new ArchiveError('archive_damaged', `The archive is damaged: ${what}.`);

/** Takes a stream in pieces of the sizes that are asked for. */
function puller(source: AsyncIterable<Uint8Array>) {
  const iterator = source[Symbol.asyncIterator]();
  let [held, heldBytes]: [Buffer[], number] = [[], 0];

  async function fill(bytes: number): Promise<void> {
    while (heldBytes < bytes) {
      const next = await iterator.next();
      if (next.done) return;
      held.push(Buffer.from(next.value));
      heldBytes += next.value.length;
    }
  }

  return {
    /** Exactly so many bytes. Error: `archive_cut_off`. */
    async take(bytes: number): Promise<Buffer> {
      await fill(bytes);
      if (heldBytes < bytes)
        throw new ArchiveError('archive_cut_off', 'The archive ends too early.');
      const all = held.length === 1 && held[0] ? held[0] : Buffer.concat(held);
      [held, heldBytes] = [[all.subarray(bytes)], heldBytes - bytes];
      return all.subarray(0, bytes);
    },
    /** True when there is nothing more. */
    async ended(): Promise<boolean> {
      await fill(1);
      return heldBytes === 0;
    },
    close: async (): Promise<void> => void (await iterator.return?.()),
  };
}

type Puller = ReturnType<typeof puller>;
type Sealed = { head: FrameHead; headBytes: Buffer; sealed: Buffer };

/** The frames up to the manifest, as they lie in the archive. */
async function* sealedFrames(pull: Puller): AsyncGenerator<Sealed> {
  for (let number = 0; ; number++) {
    const headBytes = await pull.take(FRAME_HEAD_BYTES);
    const head = readFrameHead(headBytes);
    if (head.number !== number)
      throw damaged(`frame ${head.number} stands where frame ${number} belongs`);
    yield { head, headBytes, sealed: await pull.take(head.sealedBytes) };
    if (head.kind === 'manifest') return;
  }
}

/** Rows are seldom more than so many times as long as compressed; what does not fit takes another round through the thread pool. */
const RATIO = 16;
const roomFor = ({ length }: Buffer): number =>
  Math.min(FRAME_BYTES, Math.max(constants.Z_DEFAULT_CHUNK, RATIO * length));

async function openFrame(
  key: Buffer,
  preambleHash: Buffer,
  { head, headBytes, sealed }: Sealed,
): Promise<{ head: FrameHead; bytes: Buffer }> {
  const decipher = createDecipheriv('aes-256-gcm', key, nonceOf(head.number), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(bindingOf(preambleHash, headBytes)).setAuthTag(sealed.subarray(-TAG_BYTES));
  let compressed: Buffer;
  try {
    compressed = Buffer.concat([decipher.update(sealed.subarray(0, -TAG_BYTES)), decipher.final()]);
  } catch {
    throw damaged(`frame ${head.number} does not open`);
  }
  // Authenticated, so it is what was written; the bound is for what a holder of the key may have made.
  const bytes = await decompress(compressed, {
    maxOutputLength: FRAME_BYTES,
    chunkSize: roomFor(compressed),
  }).catch(() => {
    throw damaged(`frame ${head.number} cannot be decompressed`);
  });
  return { head, bytes };
}

const isText = (value: unknown): value is string => typeof value === 'string';
const areTexts = (value: unknown): value is string[] => Array.isArray(value) && value.every(isText);

/** An identifier that may stand in SQL; names of tables and columns come from the archive. */
const NAME = /^[a-z][a-z0-9_]{0,62}$/;

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
    ![backupId, tenantId, schemaVersion, appVersion, createdAt].every(isText) ||
    !areTexts(sections) ||
    !areTexts(includes)
  )
    return false;
  if ((engine !== 'snapshot' && engine !== 'portable') || (mode !== 'full' && mode !== 'partial'))
    return false;
  const { id, sealed } = (key ?? {}) as Record<string, unknown>;
  if (!isText(id) || !isText(sealed) || !Array.isArray(tables)) return false;
  return tables.every((table: unknown) => {
    const { section, name, columns } = (table ?? {}) as Record<string, unknown>;
    return (
      isText(section) &&
      isText(name) &&
      NAME.test(name) &&
      areTexts(columns) &&
      columns.every((column) => NAME.test(column))
    );
  });
}

function parseHeader(bytes: Buffer): ArchiveHeader {
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString('utf8'));
  } catch {
    throw damaged('its header is no JSON');
  }
  if (!isHeader(value)) throw damaged('its header is not complete');
  return value;
}

/** Counts and hashes what is read, to be compared with the manifest. */
function createTally(header: ArchiveHeader) {
  const seen: { rows: number; bytes: number; hash: Hash }[] = header.tables.map(() => ({
    rows: 0,
    bytes: 0,
    hash: createHash('sha256'),
  }));
  return {
    add(table: number, bytes: Buffer): void {
      const entry = seen[table];
      if (!entry) throw damaged(`there is no table ${table}`);
      entry.rows += countLines(bytes);
      entry.bytes += bytes.length;
      entry.hash.update(bytes);
    },
    summaries: (): TableSummary[] =>
      header.tables.map(({ section, name }, at) => ({
        section,
        name,
        rows: seen[at]?.rows ?? 0,
        bytes: seen[at]?.bytes ?? 0,
        sha256: seen[at]?.hash.digest('hex') ?? '',
      })),
  };
}

function checkManifest(
  manifest: ArchiveManifest,
  header: ArchiveHeader,
  found: readonly TableSummary[],
  frames: number,
): void {
  if (manifest.backupId !== header.backupId) throw damaged('its manifest is of another archive');
  if (manifest.frames !== frames)
    throw damaged(`its manifest speaks of ${manifest.frames} frames, there are ${frames}`);
  if (JSON.stringify(manifest.tables) !== JSON.stringify(found))
    throw damaged('its rows are not those of its manifest');
  for (const { name, sha256 } of manifest.sections) {
    if (sectionHash(found.filter(({ section }) => section === name)) !== sha256)
      throw damaged(`section ${name} is not that of its manifest`);
  }
}

/**
 * Reads an archive from its first byte to its last. What it yields is authentic; that it is complete is known when the manifest
 * comes. Errors: `ArchiveError`, whatever the bytes are.
 */
export async function* readArchive(
  source: AsyncIterable<Uint8Array>,
  unseal: Unseal,
): AsyncGenerator<ArchivePart> {
  const pull = puller(source);
  try {
    const fixed = await pull.take(PREAMBLE_BYTES);
    const headerText = await pull.take(headerBytes(fixed));
    const header = parseHeader(headerText);
    const key = unseal(header);
    yield { kind: 'header', header };
    const preambleHash = hashOf(Buffer.concat([fixed, headerText]));
    const tally = createTally(header);
    let [frames, table] = [0, 0];
    for await (const { head, bytes } of inOrder(sealedFrames(pull), AT_ONCE, (frame) =>
      openFrame(key, preambleHash, frame),
    )) {
      if (head.kind === 'manifest') {
        if (!(await pull.ended())) throw damaged('there is something behind its end');
        const manifest = JSON.parse(bytes.toString('utf8')) as ArchiveManifest;
        checkManifest(manifest, header, tally.summaries(), frames);
        yield { kind: 'manifest', manifest };
        return;
      }
      if (head.table < table) throw damaged('its tables are out of order');
      [table, frames] = [head.table, frames + 1];
      tally.add(table, bytes);
      yield { kind: 'rows', table, bytes };
    }
  } finally {
    await pull.close();
  }
}

/** The header of an archive, which needs no key. Errors: `ArchiveError`. */
export async function readHeader(source: AsyncIterable<Uint8Array>): Promise<ArchiveHeader> {
  const pull = puller(source);
  try {
    return parseHeader(await pull.take(headerBytes(await pull.take(PREAMBLE_BYTES))));
  } finally {
    await pull.close();
  }
}
