import { Readable } from 'node:stream';
import { describe, expect, test } from '@jest/globals';
import type { SealedEntry } from '../../../db/audit/archives.ts';
import { archiveCutoff } from '../../../domain/audit/archives.ts';
import { chainHash, GENESIS } from '../../../domain/audit/chainHash.ts';
import type { ArchiveHeader, ArchivePart } from '../../../platform/archive/index.ts';
import { entryOf, lineOf, readSegment } from '../../../services/audit/segmentFile.ts';

const contentOf = (n: number) =>
  JSON.stringify([
    `aud_${n}`,
    'red',
    'ann',
    'gateway',
    'job.create',
    'done',
    'job',
    'job_1',
    null,
    '{"text":  "ü"}',
    'req',
    null,
    '1577836800.123',
  ]);

function chainOf(count: number): SealedEntry[] {
  let previous = GENESIS;
  return Array.from({ length: count }, (_, i) => {
    const content = contentOf(i + 1);
    const hash = chainHash(previous, i + 1, content);
    previous = hash;
    return { position: i + 1, hash, content };
  });
}

const ENTRIES = chainOf(3);
const hex = (bytes: Buffer | undefined) => bytes?.toString('hex') ?? '';
const SEGMENT = { first: 1, last: 3, previousHash: hex(GENESIS), hash: hex(ENTRIES[2]?.hash) };

/** The parts of an archive with these lines, cut into pieces that do not end with lines. */
function* partsOf(
  text: string,
  auditSegment: ArchiveHeader['auditSegment'] | null = SEGMENT,
): Generator<ArchivePart> {
  const header = { tenantId: 'red', ...(auditSegment && { auditSegment }) } as ArchiveHeader;
  yield { kind: 'header', header };
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += 50)
    yield { kind: 'rows', table: 0, bytes: bytes.subarray(at, at + 50) };
}

const lines = ENTRIES.map(lineOf);
async function read(
  text: string,
  segment: typeof SEGMENT | null = SEGMENT,
  expected?: typeof SEGMENT & { tenantId: string },
): Promise<SealedEntry[]> {
  const found = [];
  for await (const entry of readSegment(Readable.from(partsOf(text, segment)), expected))
    found.push(entry);
  return found;
}

describe('an archive of the audit log', () => {
  test('has the entries that were written', async () => {
    expect(await read(lines.join(''))).toEqual(ENTRIES);
    expect(entryOf(ENTRIES[0] as SealedEntry)).toMatchObject({
      id: 'aud_1',
      tenantId: 'red',
      at: '2020-01-01T00:00:00.123Z',
      subject: { type: 'job', id: 'job_1' },
      before: null,
      after: { text: 'ü' },
      seal: { position: 1 },
    });
  });

  test.each([
    ['a changed entry', lines.join('').replace('ann', 'bob')],
    ['a changed position', lines.join('').replace('"position":2', '"position":4')],
    ['a missing entry', `${lines[0]}${lines[2]}`],
    ['a missing last entry', lines.slice(0, 2).join('')],
    ['no entries', ''],
    ['exchanged entries', [lines[1], lines[0], lines[2]].join('')],
    ['a line that is no entry', `${lines.join('')}{}\n`],
  ])('is refused with %s', async (_, text) => {
    await expect(read(text)).rejects.toMatchObject({ code: 'archive_damaged' });
  });

  test('is refused when it is another part of the chain, of another tenant, or a backup', async () => {
    const text = lines.join('');
    const expected = { ...SEGMENT, tenantId: 'red' };
    expect(await read(text, SEGMENT, expected)).toHaveLength(3);
    for (const other of [{ tenantId: 'blue' }, { first: 2 }, { last: 4 }, { hash: hex(GENESIS) }])
      await expect(read(text, SEGMENT, { ...expected, ...other })).rejects.toMatchObject({
        code: 'archive_damaged',
      });
    await expect(read(text, null)).rejects.toMatchObject({ code: 'not_an_archive' });
  });
});

test('whole months are archived, in UTC', () => {
  expect(archiveCutoff(new Date('2026-11-22T10:00:00Z'), 400)).toEqual(
    new Date('2025-10-01T00:00:00Z'),
  );
});
