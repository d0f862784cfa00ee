import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';
import {
  bitsOf,
  blockAt,
  formatBlock,
  formatHost,
  isReserved,
  parseHost,
  sizeOfLength,
  type Block,
  type Span,
} from '../../domain/inventory/cidr.ts';
import { vrfKeyOf } from '../../domain/inventory/planSnapshot.ts';
import type { Row } from '../../domain/inventory/resource.ts';

/** What is taken, in order; `until` is how far it is known. */
type Taken = { spans: { first: bigint; last: bigint }[]; until: bigint };

const FIRST_LOOK = 100;
const LARGEST_LOOK = 50_000;

const valueOf = (text: string): bigint => {
  const host = parseHost(text);
  if (!host) throw new Error('PostgreSQL gave an address that is none');
  return host.value;
};

/** Children, ranges and addresses from `from` on, at most `limit` of each. */
async function lookAt(
  trx: Knex,
  prefix: Row,
  twins: readonly string[],
  whole: Block,
  from: bigint,
  limit: number,
): Promise<Taken> {
  const [vrf, start, end] = [
    vrfKeyOf(prefix),
    formatHost(whole.family, from),
    formatHost(whole.family, whole.last),
  ];
  // A network that begins before an address, and one that begins at it, sort before it.
  const around = Array.from({ length: bitsOf(whole.family) - whole.length }, (_, i) =>
    formatBlock(blockAt(whole.family, from, whole.length + 1 + i)),
  );
  const { rows } = (await prepared(
    trx,
    `(SELECT 'c' AS kind, host(cidr) AS first, host(broadcast(cidr)) AS last FROM prefixes WHERE vrf_key = ? AND parent_prefix_id = ANY (?::text[]) AND cidr = ANY (?::cidr[]))
      UNION ALL (SELECT 'p', host(cidr), host(broadcast(cidr)) FROM prefixes WHERE vrf_key = ? AND parent_prefix_id = ANY (?::text[]) AND cidr > ?::inet ORDER BY cidr LIMIT ?)
      UNION ALL (SELECT 'a', host(host), host(host) FROM ip_addresses WHERE vrf_key = ? AND host BETWEEN ?::inet AND ?::inet ORDER BY ip_addresses.host LIMIT ?)
      UNION ALL (SELECT 'r', host(start_address), host(end_address) FROM ip_ranges
        WHERE vrf_key = ? AND span && inet_range(?::inet, ?::inet, '[]') ORDER BY start_address LIMIT ?)`,
    [
      vrf,
      [...twins],
      around,
      vrf,
      [...twins],
      start,
      limit,
      vrf,
      start,
      end,
      limit,
      vrf,
      start,
      end,
      limit,
    ],
  )) as { rows: { kind: string; first: string; last: string }[] };
  const spans = rows.map(({ kind, first, last }) => ({
    kind,
    first: valueOf(first),
    last: valueOf(last),
  }));
  // A kind that filled its limit says nothing of what is behind its last.
  const ends = ['p', 'a', 'r'].flatMap((kind) => {
    const some = spans.filter((span) => span.kind === kind);
    return some.length === limit ? [some.at(-1)?.first ?? from] : [];
  });
  const until = ends.reduce((lowest, each) => (each < lowest ? each : lowest), whole.last);
  return {
    spans: spans.sort((a, b) => (a.first < b.first ? -1 : a.first > b.first ? 1 : 0)),
    until,
  };
}

/** The prefixes with the network of one, itself among them, and the hint below which it has no room for a block. */
async function findTwins(
  trx: Knex,
  prefix: Row,
  length: number,
): Promise<{ twins: string[]; hint: bigint | undefined }> {
  const { rows } = (await prepared(
    trx,
    `SELECT p.id, host(h.next_free) AS next FROM prefixes AS p LEFT JOIN free_hints AS h ON h.prefix_id = p.id AND h.prefix_id = ? AND h.length = ?
      WHERE p.vrf_key = ? AND p.cidr = ?::cidr`,
    [prefix.id, length, vrfKeyOf(prefix), String(prefix.cidr)],
  )) as { rows: { id: string; next: string | null }[] };
  const hint = rows.find(({ next }) => next !== null)?.next;
  return {
    twins: rows.map(({ id }) => id),
    hint: typeof hint === 'string' ? valueOf(hint) : undefined,
  };
}

/**
 * The lowest block of `length` in a prefix that touches no child, no range and no address; null when there is no room.
 * The caller holds the VRF. `whole` is the prefix; a block of one address is never a reserved one.
 */
export async function findFree(
  trx: Knex,
  prefix: Row,
  whole: Block,
  length: number,
): Promise<Block | null> {
  // Where the network is there twice, what is below either is taken.
  const { twins, hint } = await findTwins(trx, prefix, length);
  const size = sizeOfLength(whole.family, length);
  const single = length === bitsOf(whole.family);
  const upTo = single && isReserved(whole, whole.last) ? whole.last - 1n : whole.last;
  const aligned = (value: bigint): bigint => ((value + size - 1n) / size) * size;
  let at = aligned(
    hint ?? (single && whole.length < bitsOf(whole.family) - 1 ? whole.first + 1n : whole.first),
  );
  for (let limit = FIRST_LOOK; at + size - 1n <= upTo; limit = Math.min(limit * 4, LARGEST_LOOK)) {
    const { spans, until } = await lookAt(trx, prefix, twins, whole, at, limit);
    for (const { first, last } of spans) {
      if (first > until || first > at + size - 1n) break;
      if (last >= at) at = aligned(last + 1n);
    }
    if (at + size - 1n <= until && at + size - 1n <= upTo) return blockAt(whole.family, at, length);
    if (until === whole.last) return null;
  }
  return null;
}

/** Remembers that below `block` there is no room for another of its length. */
export async function keepHint(trx: Knex, prefix: Row, block: Block): Promise<void> {
  if (block.last + 1n >= 1n << BigInt(bitsOf(block.family))) return;
  await prepared(
    trx,
    `INSERT INTO free_hints (prefix_id, length, vrf_key, cidr, next_free) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (prefix_id, length) DO UPDATE SET next_free = excluded.next_free`,
    [
      prefix.id,
      block.length,
      vrfKeyOf(prefix),
      String(prefix.cidr),
      formatHost(block.family, block.last + 1n),
    ],
  );
}

/** Ranges and addresses that are looked at to say what is free between children. */
const MAX_TAKEN = 4_096;

/** Ranges and addresses in a part of a VRF; not exact where there are more than are looked at. */
export async function listTaken(
  db: Knex,
  vrf: string,
  { family, first, last }: Span,
): Promise<{ spans: Span[]; exact: boolean }> {
  const bounds = [vrf, formatHost(family, first), formatHost(family, last), MAX_TAKEN + 1];
  const { rows } = await db.raw<{ rows: { first: string; last: string }[] }>(
    `(SELECT host(host) AS first, host(host) AS last FROM ip_addresses WHERE vrf_key = ? AND host BETWEEN ?::inet AND ?::inet ORDER BY ip_addresses.host LIMIT ?)
     UNION ALL (SELECT host(start_address), host(end_address) FROM ip_ranges WHERE vrf_key = ? AND span && inet_range(?::inet, ?::inet, '[]') LIMIT ?)`,
    [...bounds, ...bounds],
  );
  return {
    spans: rows.map((row) => ({ family, first: valueOf(row.first), last: valueOf(row.last) })),
    exact: rows.length <= MAX_TAKEN,
  };
}
