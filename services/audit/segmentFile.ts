import type { SealedEntry } from '../../db/audit/archives.ts';
import { chainHash } from '../../domain/audit/chainHash.ts';
import {
  ArchiveError,
  type ArchiveHeader,
  type ArchivePart,
} from '../../platform/archive/index.ts';

/** The one table of an archive of the audit log; a row is a `SealedEntry`. */
export const SEGMENT_TABLE = {
  section: 'audit',
  name: 'audit_chain',
  columns: ['position', 'hash', 'content'],
};

export type AuditSegment = NonNullable<ArchiveHeader['auditSegment']>;

const NEWLINE = 10;

/** An entry as a line of an archive. */
export const lineOf = ({ position, hash, content }: SealedEntry): string =>
  `${JSON.stringify({ position, hash: hash.toString('hex'), content })}\n`;

/** Checks that entries follow each other in the chain, from the hash before the first one. */
export function createChainWalk({
  first,
  previousHash,
}: Pick<AuditSegment, 'first' | 'previousHash'>) {
  let last: { position: number; hash: Buffer } = {
    position: first - 1,
    hash: Buffer.from(previousHash, 'hex'),
  };
  return {
    last: () => last,
    /** False for an entry that is not the next one, or whose hash does not cover its content. */
    accepts({ position, hash, content }: SealedEntry): boolean {
      const expected = chainHash(last.hash, last.position + 1, content);
      if (position !== last.position + 1 || !expected.equals(hash)) return false;
      last = { position, hash: expected };
      return true;
    },
  };
}

const damaged = (what: string) =>
  new ArchiveError('archive_damaged', `The archive of the audit log is damaged: ${what}.`);

function parseLine(line: string): SealedEntry {
  const { position, hash, content } = JSON.parse(line) as Record<string, unknown>;
  if (typeof position !== 'number' || typeof hash !== 'string' || typeof content !== 'string')
    throw damaged('it has a line that is not an entry');
  return { position, hash: Buffer.from(hash, 'hex'), content };
}

/** The lines of the rows of an archive. */
async function* linesOf(
  parts: AsyncIterable<ArchivePart>,
  onHeader: (header: ArchiveHeader) => void,
) {
  let rest: Buffer[] = [];
  for await (const part of parts) {
    if (part.kind === 'header') onHeader(part.header);
    if (part.kind !== 'rows') continue;
    let start = 0;
    for (
      let end = part.bytes.indexOf(NEWLINE);
      end !== -1;
      end = part.bytes.indexOf(NEWLINE, start)
    ) {
      yield Buffer.concat([...rest, part.bytes.subarray(start, end)]).toString('utf8');
      [rest, start] = [[], end + 1];
    }
    // The memory of a part may be reused for a later one.
    if (start < part.bytes.length) rest.push(Buffer.from(part.bytes.subarray(start)));
  }
}

/**
 * Reads an archive of the audit log, and verifies that its entries are the part of the chain that its
 * header describes. With `expected`, that part must be this one. Errors: `ArchiveError`, `StoreError`.
 */
export async function* readSegment(
  parts: AsyncIterable<ArchivePart>,
  expected?: AuditSegment & { tenantId: string },
): AsyncGenerator<SealedEntry> {
  let segment: AuditSegment | undefined;
  let walk: ReturnType<typeof createChainWalk> | undefined;
  const onHeader = ({ auditSegment, tenantId }: ArchiveHeader) => {
    if (!auditSegment)
      throw new ArchiveError('not_an_archive', 'This is not an archive of the audit log.');
    const found = { ...auditSegment, tenantId };
    if (expected && KEYS.some((key) => found[key] !== expected[key]))
      throw damaged('it has another part of the chain');
    segment = auditSegment;
    walk = createChainWalk(auditSegment);
  };
  for await (const line of linesOf(parts, onHeader)) {
    const entry = parseLine(line);
    if (!walk?.accepts(entry))
      throw damaged(`position ${entry.position} does not follow in the chain`);
    yield entry;
  }
  const last = walk?.last();
  if (!segment || last?.position !== segment.last || last.hash.toString('hex') !== segment.hash)
    throw damaged('its chain does not end where its header says');
}

const KEYS = ['tenantId', 'first', 'last', 'previousHash', 'hash'] as const;

/** The fields of an entry that the text of its hash has, as the API names them. */
export function entryOf({ position, hash, content }: SealedEntry): Record<string, unknown> {
  const [
    id,
    tenantId,
    actorId,
    via,
    action,
    outcome,
    type,
    subjectId,
    before,
    after,
    requestId,
    address,
    epoch,
  ] = JSON.parse(content) as (string | null)[];
  const parsed = (text: string | null | undefined): unknown =>
    typeof text === 'string' ? JSON.parse(text) : null;
  return {
    id,
    at: new Date(Number(epoch) * 1_000).toISOString(),
    tenantId,
    actorId,
    via,
    action,
    outcome,
    subject: { type, id: subjectId },
    before: parsed(before),
    after: parsed(after),
    requestId,
    address,
    seal: { position, hash: hash.toString('hex') },
  };
}
