import { createCipheriv, createHash } from 'node:crypto';
import { constants, zstdCompress } from 'node:zlib';
import { promisify } from 'node:util';
import {
  additionalDataOf,
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
import { createRowBlocks, type RowBlock, type RowSource } from './rowBlocks.ts';

const compress = promisify(zstdCompress);
/** The checksum shows damage between compression and decompression, such as by faulty memory. */
const params = { [constants.ZSTD_c_compressionLevel]: 1, [constants.ZSTD_c_checksumFlag]: 1 };
/** Sizes the output buffer: each further buffer costs a round trip to the thread pool. */
const compressionOptions = ({ length }: Buffer) => ({
  params,
  chunkSize: Math.max(constants.Z_DEFAULT_CHUNK, length >> 2),
});

/** Destination of an archive. `write` resolves when it accepts more data. */
type ArchiveSink = { write(bytes: Buffer): Promise<void> };

/**
 * Writes an archive, table by table in the order of its header, in constant memory. `key` has 32
 * bytes and must not be used for another archive.
 */
export async function createArchiveWriter(header: ArchiveHeader, key: Buffer, sink: ArchiveSink) {
  const preamble = writePreamble(header);
  const preambleHash = hashOf(preamble);
  const tables: TableSummary[] = [];
  /** The rows of the current table. */
  let tally = { rows: 0, bytes: 0, hash: createHash('sha256') };
  let frames = 0;
  await sink.write(preamble);
  /** Resolves when the frames so far are written. Frames are written in order. */
  let written: Promise<void> = Promise.resolve();
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => undefined);

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

  /** Compresses a block while those before it are written. */
  function writeBlock({ bytes, rows, release }: RowBlock): void {
    const table = tables.length;
    tally.hash.update(bytes);
    tally.rows += rows;
    tally.bytes += bytes.length;
    const compressed = compress(bytes, compressionOptions(bytes));
    written = Promise.all([compressed, written]).then(async ([content]) => {
      await writeFrame('rows', table, content);
      release();
    });
    written.catch(failed.reject);
  }

  const blocks = createRowBlocks(writeBlock);
  const lanes: ReturnType<typeof blocks.addLane>[] = [];
  function addLane() {
    const lane = blocks.addLane();
    failed.promise.catch((error: unknown) => lane.fail(error));
    return lane;
  }

  return {
    /**
     * Writes the rows of the next table, one per line, from concurrent sources: each row is complete,
     * the order of the rows of different sources is not defined. Returns their number.
     */
    async rows(sources: readonly RowSource[]): Promise<number> {
      const table = header.tables[tables.length];
      if (!table) throw new Error('The archive has no such table');
      tally = { rows: 0, bytes: 0, hash: createHash('sha256') };
      const read = async (source: RowSource, at: number) => {
        const lane = (lanes[at] ??= addLane());
        await lane.sink.accepted();
        await source(lane.sink);
        lane.end();
      };
      await Promise.race([Promise.all(sources.map(read)), failed.promise]);
      const { rows, bytes, hash } = tally;
      const { section, name } = table;
      tables.push({ section, name, rows, bytes, sha256: hash.digest('hex') });
      return rows;
    },

    /** Writes the manifest, the last frame. Error: not every table was written. */
    async finish(): Promise<ArchiveManifest> {
      if (tables.length !== header.tables.length) throw new Error('Not every table is written');
      await written;
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
