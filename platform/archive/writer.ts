import { createCipheriv, createHash } from 'node:crypto';
import { constants, zstdCompress } from 'node:zlib';
import { promisify } from 'node:util';
import {
  additionalDataOf,
  countLines,
  FRAME_BYTES,
  hashOf,
  frameNonce,
  sectionHash,
  TAG_BYTES,
  writeFrameHead,
  writePreamble,
  type ArchiveHeader,
  type ArchiveManifest,
  type FrameKind,
  type TableSummary,
} from './format.ts';
import { mapInOrder } from './inOrder.ts';

const compress = promisify(zstdCompress);
const params = { [constants.ZSTD_c_compressionLevel]: 3 };
/** Sizes the output buffer: each further buffer costs a round trip to the thread pool. */
const compressionOptions = ({ length }: Buffer) => ({
  params,
  chunkSize: Math.max(constants.Z_DEFAULT_CHUNK, length >> 2),
});

/** Number of frames that are compressed concurrently. */
const CONCURRENCY = 4;

/** Destination of an archive. `write` resolves when it accepts more data. */
type ArchiveSink = { write(bytes: Buffer): Promise<void> };

/**
 * Collects a stream into chunks of `FRAME_BYTES`. The memory of a chunk is reused after
 * `CONCURRENCY` others: allocating a megabyte outside the heap for each would trigger frequent
 * garbage collections.
 */
async function* chunksOf(source: AsyncIterable<Buffer>, memory: Buffer[]): AsyncGenerator<Buffer> {
  const chunkMemory = (turn: number) =>
    (memory[turn % (CONCURRENCY + 1)] ??= Buffer.allocUnsafeSlow(FRAME_BYTES));
  let [turn, filled] = [0, 0];
  for await (const bytes of source) {
    for (let at = 0; at < bytes.length;) {
      const chunk = chunkMemory(turn);
      const copied = bytes.copy(chunk, filled, at);
      at += copied;
      filled += copied;
      if (filled < FRAME_BYTES) continue;
      yield chunk;
      [turn, filled] = [turn + 1, 0];
    }
  }
  if (filled > 0) yield chunkMemory(turn).subarray(0, filled);
}

/**
 * Writes an archive, table by table in the order of its header, in constant memory. `key` has 32
 * bytes and must not be used for another archive.
 */
export async function createArchiveWriter(header: ArchiveHeader, key: Buffer, sink: ArchiveSink) {
  const preamble = writePreamble(header);
  const preambleHash = hashOf(preamble);
  const tables: TableSummary[] = [];
  const memory: Buffer[] = [];
  let frames = 0;
  await sink.write(preamble);

  async function writeFrame(kind: FrameKind, table: number, compressed: Buffer): Promise<void> {
    const number = frames++;
    const head = writeFrameHead({
      kind,
      table,
      number,
      sealedBytes: compressed.length + TAG_BYTES,
    });
    const cipher = createCipheriv('aes-256-gcm', key, frameNonce(number)).setAAD(
      additionalDataOf(preambleHash, head),
    );
    await sink.write(
      Buffer.concat([head, cipher.update(compressed), cipher.final(), cipher.getAuthTag()]),
    );
  }

  return {
    /** Writes the rows of the next table, one per line. Returns their number. */
    async rows(source: AsyncIterable<Buffer>): Promise<number> {
      const index = tables.length;
      const table = header.tables[index];
      if (!table) throw new Error('The archive has no such table');
      const hash = createHash('sha256');
      let [rows, bytes] = [0, 0];
      const compressChunk = (chunk: Buffer) => {
        hash.update(chunk);
        rows += countLines(chunk);
        bytes += chunk.length;
        return compress(chunk, compressionOptions(chunk));
      };
      for await (const compressed of mapInOrder(
        chunksOf(source, memory),
        CONCURRENCY,
        compressChunk,
      ))
        await writeFrame('rows', index, compressed);
      tables.push({
        section: table.section,
        name: table.name,
        rows,
        bytes,
        sha256: hash.digest('hex'),
      });
      return rows;
    },

    /** Writes the manifest, the last frame. Error: not every table was written. */
    async finish(): Promise<ArchiveManifest> {
      if (tables.length !== header.tables.length) throw new Error('Not every table is written');
      const names = [...new Set(tables.map(({ section }) => section))];
      const sections = names.map((name) => {
        const sectionTables = tables.filter(({ section }) => section === name);
        return {
          name,
          rows: sectionTables.reduce((sum, { rows }) => sum + rows, 0),
          sha256: sectionHash(sectionTables),
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
      await writeFrame('manifest', 0, await compress(text, compressionOptions(text)));
      return manifest;
    },
  };
}
