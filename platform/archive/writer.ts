import { createCipheriv, createHash } from 'node:crypto';
import { constants, zstdCompress } from 'node:zlib';
import { promisify } from 'node:util';
import {
  bindingOf,
  countLines,
  FRAME_BYTES,
  hashOf,
  nonceOf,
  sectionHash,
  TAG_BYTES,
  writeFrameHead,
  writePreamble,
  type ArchiveHeader,
  type ArchiveManifest,
  type FrameKind,
  type TableSummary,
} from './format.ts';
import { inOrder } from './inOrder.ts';

const compress = promisify(zstdCompress);
const params = { [constants.ZSTD_c_compressionLevel]: 3 };
/** Room that the result most often fits into: each further piece of it is another round through the thread pool. */
const settingsFor = ({ length }: Buffer) => ({
  params,
  chunkSize: Math.max(constants.Z_DEFAULT_CHUNK, length >> 2),
});

/** Frames that are compressed while others are sealed and written. */
const AT_ONCE = 4;

/** Where the bytes of an archive go; resolves when there is room for more. */
type ArchiveSink = { write(bytes: Buffer): Promise<void> };

/**
 * Gathers a stream into pieces of one size. The memory of a piece is used again after `AT_ONCE` others: what is allocated
 * outside of the heap, a megabyte for each, would have all of the heap collected every few pieces.
 */
async function* pieces(source: AsyncIterable<Buffer>, memory: Buffer[]): AsyncGenerator<Buffer> {
  const next = (turn: number) =>
    (memory[turn % (AT_ONCE + 1)] ??= Buffer.allocUnsafeSlow(FRAME_BYTES));
  let [turn, filled] = [0, 0];
  for await (const bytes of source) {
    for (let at = 0; at < bytes.length;) {
      const piece = next(turn);
      const copied = bytes.copy(piece, filled, at);
      at += copied;
      filled += copied;
      if (filled < FRAME_BYTES) continue;
      yield piece;
      [turn, filled] = [turn + 1, 0];
    }
  }
  if (filled > 0) yield next(turn).subarray(0, filled);
}

/**
 * Writes an archive, table by table in the order of its header, in memory that does not grow with it. `key` has 32 bytes
 * and must never be used for another archive.
 */
export async function createArchiveWriter(header: ArchiveHeader, key: Buffer, sink: ArchiveSink) {
  const preamble = writePreamble(header);
  const preambleHash = hashOf(preamble);
  const tables: TableSummary[] = [];
  const memory: Buffer[] = [];
  let frames = 0;
  await sink.write(preamble);

  async function frame(kind: FrameKind, table: number, compressed: Buffer): Promise<void> {
    const number = frames++;
    const head = writeFrameHead({
      kind,
      table,
      number,
      sealedBytes: compressed.length + TAG_BYTES,
    });
    const cipher = createCipheriv('aes-256-gcm', key, nonceOf(number)).setAAD(
      bindingOf(preambleHash, head),
    );
    await sink.write(
      Buffer.concat([head, cipher.update(compressed), cipher.final(), cipher.getAuthTag()]),
    );
  }

  return {
    /** Writes the rows of the next table, a line each. Returns how many there were. */
    async rows(source: AsyncIterable<Buffer>): Promise<number> {
      const index = tables.length;
      const table = header.tables[index];
      if (!table) throw new Error('The archive has no such table');
      const hash = createHash('sha256');
      let [rows, bytes] = [0, 0];
      const squeeze = (piece: Buffer) => {
        hash.update(piece);
        rows += countLines(piece);
        bytes += piece.length;
        return compress(piece, settingsFor(piece));
      };
      for await (const compressed of inOrder(pieces(source, memory), AT_ONCE, squeeze))
        await frame('rows', index, compressed);
      tables.push({
        section: table.section,
        name: table.name,
        rows,
        bytes,
        sha256: hash.digest('hex'),
      });
      return rows;
    },

    /** Writes the manifest, after which there is nothing. */
    async finish(): Promise<ArchiveManifest> {
      if (tables.length !== header.tables.length) throw new Error('Not every table is written');
      const names = [...new Set(tables.map(({ section }) => section))];
      const sections = names.map((name) => {
        const own = tables.filter(({ section }) => section === name);
        return {
          name,
          rows: own.reduce((sum, { rows }) => sum + rows, 0),
          sha256: sectionHash(own),
        };
      });
      const manifest = {
        backupId: header.backupId,
        tables,
        sections,
        rows: tables.reduce((sum, { rows }) => sum + rows, 0),
        frames,
      };
      const text = Buffer.from(JSON.stringify(manifest));
      await frame('manifest', 0, await compress(text, settingsFor(text)));
      return manifest;
    },
  };
}
