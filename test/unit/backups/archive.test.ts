import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import {
  additionalDataOf,
  FRAME_BYTES,
  hashOf,
  frameNonce,
  writeFrameHead,
} from '../../../platform/archive/format.ts';
import {
  ArchiveError,
  createArchiveWriter,
  readArchive,
  type ArchiveHeader,
  type RowSource,
} from '../../../platform/archive/index.ts';
import { propertyRuns } from '../../support/effort.ts';
import { createVault } from '../../../platform/vault.ts';
import { unsealWith } from '../../../services/backups/archives.ts';

const vault = createVault([{ id: 'test', key: Buffer.alloc(32, 7) }]);
const unseal = unsealWith(vault);
const keyOf = (backupId: string, key: Buffer) => ({
  id: 'test',
  sealed: vault.seal(key.toString('base64'), `backup:${backupId}`),
});

const stream = (bytes: Buffer, size: number): Readable =>
  Readable.from(
    Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
      bytes.subarray(i * size, (i + 1) * size),
    ),
  );

/** Passes lines in pieces of at most `size` bytes. */
const rowsOf =
  (bytes: Buffer, size: number): RowSource =>
  async (sink) => {
    for (let at = 0, unread = 0; at < bytes.length; unread += 1) {
      const newline = bytes.indexOf(10, at);
      const lineEnd = newline === -1 ? bytes.length : newline + 1;
      const end = Math.min(lineEnd, at + size);
      sink.write(bytes, at, end);
      if (newline !== -1 && end === lineEnd) sink.endRow();
      at = end;
      // Sources take turns even when none has to wait.
      if (unread % 3 === 0) await (sink.accepted() ?? Promise.resolve());
    }
  };

const HEADER: ArchiveHeader = {
  backupId: 'bkp_1',
  tenantId: 'platform',
  engine: 'snapshot',
  schemaVersion: '0008_backups',
  appVersion: '1',
  createdAt: '2026-11-22T00:00:00.000Z',
  mode: 'full',
  sections: ['jobs'],
  includes: [],
  tables: [],
  key: { id: 'test', sealed: '' },
};

type Tables = Record<string, Buffer>;

async function write(tables: Tables, backupId = 'bkp_1', key = randomBytes(32)): Promise<Buffer> {
  const sources = Object.entries(tables).map(([name, bytes]): [string, RowSource[]] => [
    name,
    [rowsOf(bytes, 70_000)],
  ]);
  return writeSources(Object.fromEntries(sources), backupId, key);
}

async function writeSources(
  tables: Record<string, RowSource[]>,
  backupId = 'bkp_1',
  key = randomBytes(32),
): Promise<Buffer> {
  const header = {
    ...HEADER,
    backupId,
    tables: Object.keys(tables).map((name) => ({ section: 'jobs', name, columns: ['id'] })),
    key: keyOf(backupId, key),
  };
  const written: Buffer[] = [];
  const writer = await createArchiveWriter(header, key, {
    write: (bytes) => Promise.resolve(void written.push(bytes)),
  });
  for (const sources of Object.values(tables)) await writer.rows(sources);
  await writer.finish();
  return Buffer.concat(written);
}

async function read(archive: Buffer, size = 60_000): Promise<Tables> {
  const found: Record<string, Buffer[]> = {};
  let names: string[] = [];
  let complete = false;
  for await (const part of readArchive(stream(archive, size), unseal)) {
    if (part.kind === 'header') names = part.header.tables.map(({ name }) => name);
    else if (part.kind === 'rows') (found[names[part.table] ?? ''] ??= []).push(part.bytes);
    else complete = true;
  }
  expect(complete).toBe(true);
  return Object.fromEntries(names.map((name) => [name, Buffer.concat(found[name] ?? [])]));
}

const lines = (seed: number, count: number): Buffer =>
  Buffer.from(
    Array.from(
      { length: count },
      (_, i) => `${seed}\t${(i * 2_654_435_761 + seed) % 1_000_003}\tsome words\n`,
    ).join(''),
  );
/** Several frames of one table, one of another, none of a third. */
const TABLES = { jobs: lines(1, 110_000), nothing: Buffer.alloc(0), job_logs: lines(2, 500) };

/** Where the frames of an archive begin and end, the manifest last. */
function framesOf(archive: Buffer): [number, number][] {
  const frames: [number, number][] = [];
  for (let at = 14 + archive.readUInt32BE(10); at < archive.length;) {
    const end = at + 11 + archive.readUInt32BE(at + 7);
    frames.push([at, end]);
    at = end;
  }
  return frames;
}

describe('an archive', () => {
  test('returns the rows that were written, in chunks of any size', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.dictionary(
          fc.stringMatching(/^[a-z][a-z_]{0,9}$/),
          fc.uint8Array({ maxLength: 5_000 }),
          { maxKeys: 6 },
        ),
        fc.integer({ min: 1, max: 3_000 }),
        async (tables, size) => {
          const expected = Object.fromEntries(
            Object.entries(tables).map(([name, bytes]) => [name, Buffer.from(bytes)]),
          );
          expect(await read(await write(expected), size)).toEqual(expected);
        },
      ),
      { numRuns: propertyRuns(30) },
    );
    const large = await read(await write(TABLES));
    expect(Object.entries(TABLES).every(([name, bytes]) => large[name]?.equals(bytes))).toBe(true);
    expect(framesOf(await write(TABLES)).length).toBeGreaterThan(4);
  }, 60_000);

  test('keeps frames separate that are compressed concurrently', async () => {
    const jobs = randomBytes(8 << 20);
    expect((await read(await write({ jobs }))).jobs?.equals(jobs)).toBe(true);
  });

  test('keeps rows of concurrent sources whole, however long they are', async () => {
    const row = (source: number, length: number) => `${source}:${'x'.repeat(length)}`;
    // Rows that fill a frame exactly, exceed it, span several frames, and short ones between them.
    const lengths = [10, FRAME_BYTES - 3, 5, 3 * FRAME_BYTES, 500_000, 700_000, FRAME_BYTES + 1, 0];
    const sources = [1, 2].map((source) => lengths.map((length) => row(source, length)));
    const archive = await writeSources({
      jobs: sources.map((rows) => rowsOf(Buffer.from(`${rows.join('\n')}\n`), 60_000)),
    });
    const found = (await read(archive)).jobs?.toString().trimEnd().split('\n') ?? [];
    for (const [at, rows] of sources.entries())
      expect(found.filter((each) => each.startsWith(`${at + 1}:`))).toEqual(rows);
    expect(found).toHaveLength(sources.flat().length);
  });

  test('cannot be written when its destination fails, and no source waits for ever', async () => {
    const header = { ...HEADER, tables: [{ section: 'jobs', name: 'jobs', columns: ['id'] }] };
    let writes = 0;
    const writer = await createArchiveWriter(header, randomBytes(32), {
      write: () => (writes++ === 0 ? Promise.resolve() : Promise.reject(new Error('full'))),
    });
    const bytes = Buffer.from(`${'a'.repeat(1_000)}\n`.repeat(8_000));
    const outcomes = [1, 2].map(() => Promise.withResolvers<unknown>());
    const sources = outcomes.map(({ resolve }): RowSource => (sink) => {
      const read = rowsOf(bytes, 60_000)(sink);
      read.then(resolve, resolve);
      return read;
    });
    await expect(writer.rows(sources)).rejects.toThrow('full');
    for (const { promise } of outcomes) expect(await promise).toEqual(new Error('full'));
  });

  test('contains no row unencrypted and differs each time', async () => {
    const [one, other] = [
      await write({ jobs: Buffer.from('secret-word\n'.repeat(50)) }),
      await write({ jobs: Buffer.from('secret-word\n'.repeat(50)) }),
    ];
    expect(one.includes('secret-word')).toBe(false);
    expect(one.equals(other)).toBe(false);
  });

  test('can be decrypted only with its master key, which the error names', async () => {
    const archive = await write({ jobs: lines(3, 10) });
    const other = unsealWith(createVault([{ id: 'other', key: Buffer.alloc(32, 8) }]));
    const readAll = async () => {
      for await (const _ of readArchive(stream(archive, 1_000), other));
    };
    await expect(readAll()).rejects.toMatchObject({
      code: 'master_key_missing',
      message: expect.stringContaining('test'),
    });
    const renamed = unsealWith(createVault([{ id: 'test', key: Buffer.alloc(32, 8) }]));
    const readAgain = async () => {
      for await (const _ of readArchive(stream(archive, 1_000), renamed));
    };
    await expect(readAgain()).rejects.toMatchObject({
      code: 'master_key_missing',
      message: expect.stringContaining('another key of this name'),
    });
  });

  test('of a newer format, and a file that is no archive, are refused with a code', async () => {
    const archive = await write({ jobs: lines(3, 10) });
    const newer = Buffer.from(archive);
    newer.writeUInt16BE(2, 8);
    await expect(read(newer)).rejects.toMatchObject({ code: 'format_too_new' });
    await expect(
      read(Buffer.from('PGDMP and so on, which is another format')),
    ).rejects.toMatchObject({ code: 'not_an_archive' });
    await expect(read(Buffer.alloc(0))).rejects.toMatchObject({ code: 'archive_truncated' });
  });
});

describe('the content that is read', () => {
  test('belongs to the table for which it was written', async () => {
    const archive = await write({ jobs: lines(1, 5), job_logs: lines(2, 5) });
    const [first] = framesOf(archive);
    const moved = Buffer.from(archive);
    moved.writeUInt16BE(1, (first?.[0] ?? 0) + 1);
    const receivedKinds: string[] = [];
    const readAll = async () => {
      for await (const part of readArchive(stream(moved, 500), unseal))
        receivedKinds.push(part.kind);
    };
    await expect(readAll()).rejects.toMatchObject({ code: 'archive_damaged' });
    expect(receivedKinds).toEqual(['header']);
  });

  test('matches the manifest, even if a key holder has forged it', async () => {
    const key = randomBytes(32);
    const archive = await write({ jobs: lines(1, 5) }, 'bkp_1', key);
    const [from = 0, to = 0] = framesOf(archive).at(-1) ?? [];
    const preambleHash = hashOf(archive.subarray(0, framesOf(archive)[0]?.[0]));
    const [head, sealed] = [archive.subarray(from, from + 11), archive.subarray(from + 11, to)];
    const decipher = createDecipheriv('aes-256-gcm', key, frameNonce(1))
      .setAAD(additionalDataOf(preambleHash, head))
      .setAuthTag(sealed.subarray(-16));
    const text = zstdDecompressSync(
      Buffer.concat([decipher.update(sealed.subarray(0, -16)), decipher.final()]),
    ).toString('utf8');
    expect(text).toContain('"rows":5');
    const forgedManifest = zstdCompressSync(Buffer.from(text.replaceAll('"rows":5', '"rows":6')));
    const newHead = writeFrameHead({
      kind: 'manifest',
      table: 0,
      number: 1,
      sealedBytes: forgedManifest.length + 16,
    });
    const cipher = createCipheriv('aes-256-gcm', key, frameNonce(1)).setAAD(
      additionalDataOf(preambleHash, newHead),
    );
    const forged = Buffer.concat([
      archive.subarray(0, from),
      newHead,
      cipher.update(forgedManifest),
      cipher.final(),
      cipher.getAuthTag(),
    ]);
    await expect(read(forged)).rejects.toMatchObject({
      code: 'archive_damaged',
      message: expect.stringContaining('manifest'),
    });
  });
});

describe('a damaged archive', () => {
  const assertRefused = async (archive: Buffer): Promise<void> => {
    const error: unknown = await read(archive).then(
      () => new Error('it was read'),
      (failure: unknown) => failure,
    );
    expect(error).toBeInstanceOf(ArchiveError);
  };

  test('is refused when any bytes are changed, removed, inserted, swapped or repeated', async () => {
    const archive = await write({
      jobs: lines(1, 400),
      nothing: Buffer.alloc(0),
      job_logs: lines(2, 300),
    });
    const offset = fc.nat(archive.length - 1);
    const damage = fc
      .oneof(
        fc.tuple(offset, fc.integer({ min: 1, max: 255 })).map(([where, bits]) => {
          const copy = Buffer.from(archive);
          copy[where] = (copy[where] ?? 0) ^ bits;
          return copy;
        }),
        offset.map((length) => archive.subarray(0, length)),
        fc
          .tuple(offset, fc.integer({ min: 1, max: 64 }))
          .filter(([where, count]) => where + count < archive.length)
          .map(([where, count]) =>
            Buffer.concat([archive.subarray(0, where), archive.subarray(where + count)]),
          ),
        fc
          .tuple(fc.nat(archive.length), fc.uint8Array({ minLength: 1, maxLength: 40 }))
          .map(([where, bytes]) =>
            Buffer.concat([archive.subarray(0, where), bytes, archive.subarray(where)]),
          ),
        fc
          .tuple(offset, fc.integer({ min: 1, max: 200 }))
          .map(([where, count]) =>
            Buffer.concat([archive.subarray(0, where + count), archive.subarray(where)]),
          ),
        fc.tuple(offset, offset, fc.integer({ min: 1, max: 64 })).map(([one, other, count]) => {
          const copy = Buffer.from(archive);
          archive.copy(copy, one, other, other + count);
          archive.copy(copy, other, one, one + count);
          return copy;
        }),
      )
      .filter((copy) => !copy.equals(archive));
    await fc.assert(fc.asyncProperty(damage, assertRefused), { numRuns: propertyRuns(150) });
  }, 120_000);

  test('is refused when a frame is omitted, repeated, moved or taken from another archive', async () => {
    const [archive, other] = [await write(TABLES, 'bkp_1'), await write(TABLES, 'bkp_2')];
    const [frames, foreign] = [framesOf(archive), framesOf(other)];
    const head = archive.subarray(0, frames[0]?.[0]);
    const parts = frames.map(([from, to]) => archive.subarray(from, to));
    const build = (chosen: readonly Buffer[]) => Buffer.concat([head, ...chosen]);
    const cases: Buffer[] = [
      build([...parts, parts.at(-1) ?? head]),
      build(parts.toReversed()),
      build([...parts.slice(0, -1)]),
      Buffer.concat([archive, archive]),
    ];
    for (let i = 0; i < parts.length; i++) {
      cases.push(
        build(parts.toSpliced(i, 1)),
        build(parts.toSpliced(i, 0, parts[i] ?? head)),
        build(parts.toSpliced(i, 1, other.subarray(...(foreign[i] ?? [0, 0])))),
      );
      for (let j = i + 1; j < parts.length; j++)
        cases.push(build(parts.with(i, parts[j] ?? head).with(j, parts[i] ?? head)));
    }
    expect(build(parts).equals(archive)).toBe(true);
    for (const each of cases) await assertRefused(each);
  }, 60_000);
});
