import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';
import {
  addressBits,
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

/** Occupied spans in order. Spans that start after `knownUntil` may be missing. */
type Occupied = { spans: { first: bigint; last: bigint }[]; knownUntil: bigint };

/** The number of rows of each kind in the first query; later queries read more, up to a maximum. */
const INITIAL_BATCH = 100;
const MAX_BATCH = 50_000;

const valueOf = (text: string): bigint => {
  const host = parseHost(text);
  if (!host) throw new Error('PostgreSQL returned an invalid address');
  return host.value;
};

/** Loads the children, ranges and addresses from address `from`, up to `limit` of each kind. */
async function loadOccupied(
  trx: Knex,
  prefix: Row,
  equalPrefixIds: readonly string[],
  whole: Block,
  from: bigint,
  limit: number,
): Promise<Occupied> {
  const vrf = vrfKeyOf(prefix);
  const start = formatHost(whole.family, from);
  const end = formatHost(whole.family, whole.last);
  // A child that contains `from` sorts before it, so it is found by all networks that it can be.
  const containing = Array.from({ length: addressBits(whole.family) - whole.length }, (_, i) =>
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
      [...equalPrefixIds],
      containing,
      vrf,
      [...equalPrefixIds],
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
  // A kind with as many rows as its limit may have more after the last.
  const limits = ['p', 'a', 'r'].flatMap((kind) => {
    const ofKind = spans.filter((span) => span.kind === kind);
    return ofKind.length === limit ? [ofKind.at(-1)?.first ?? from] : [];
  });
  const knownUntil = limits.reduce((lowest, each) => (each < lowest ? each : lowest), whole.last);
  return {
    spans: spans.sort((a, b) => (a.first < b.first ? -1 : a.first > b.first ? 1 : 0)),
    knownUntil,
  };
}

/**
 * The ids of all prefixes with the network of a prefix, itself included, and the address below
 * which it has no free block of a length.
 */
async function findEqualPrefixes(
  trx: Knex,
  prefix: Row,
  length: number,
): Promise<{ equalPrefixIds: string[]; hint: bigint | undefined }> {
  const { rows } = (await prepared(
    trx,
    `SELECT p.id, host(h.next_free) AS next FROM prefixes AS p LEFT JOIN free_hints AS h ON h.prefix_id = p.id AND h.prefix_id = ? AND h.length = ?
      WHERE p.vrf_key = ? AND p.cidr = ?::cidr`,
    [prefix.id, length, vrfKeyOf(prefix), String(prefix.cidr)],
  )) as { rows: { id: string; next: string | null }[] };
  const hint = rows.find(({ next }) => next !== null)?.next;
  return {
    equalPrefixIds: rows.map(({ id }) => id),
    hint: typeof hint === 'string' ? valueOf(hint) : undefined,
  };
}

/**
 * Finds the lowest block of `length` in a prefix that overlaps no child, range or address. A single
 * address is never the network or broadcast address. Null when there is no such block.
 *
 * The transaction must hold the lock of the VRF. `whole` is the network of the prefix.
 */
export async function findFreeBlock(
  trx: Knex,
  prefix: Row,
  whole: Block,
  length: number,
): Promise<Block | null> {
  // The children of all prefixes with this network are occupied.
  const { equalPrefixIds, hint } = await findEqualPrefixes(trx, prefix, length);
  const size = sizeOfLength(whole.family, length);
  const single = length === addressBits(whole.family);
  const lastUsable = single && isReserved(whole, whole.last) ? whole.last - 1n : whole.last;
  const aligned = (value: bigint): bigint => ((value + size - 1n) / size) * size;
  let candidate = aligned(
    hint ??
      (single && whole.length < addressBits(whole.family) - 1 ? whole.first + 1n : whole.first),
  );
  for (
    let limit = INITIAL_BATCH;
    candidate + size - 1n <= lastUsable;
    limit = Math.min(limit * 4, MAX_BATCH)
  ) {
    const { spans, knownUntil } = await loadOccupied(
      trx,
      prefix,
      equalPrefixIds,
      whole,
      candidate,
      limit,
    );
    for (const { first, last } of spans) {
      if (first > knownUntil || first > candidate + size - 1n) break;
      if (last >= candidate) candidate = aligned(last + 1n);
    }
    if (candidate + size - 1n <= knownUntil && candidate + size - 1n <= lastUsable)
      return blockAt(whole.family, candidate, length);
    if (knownUntil === whole.last) return null;
  }
  return null;
}

/** Stores that a prefix has no free block of this length below the end of `block`. */
export async function saveFreeHint(trx: Knex, prefix: Row, block: Block): Promise<void> {
  if (block.last + 1n >= 1n << BigInt(addressBits(block.family))) return;
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

/** The number of ranges, and of addresses, that are read to find the free space. */
const MAX_OCCUPIED = 4_096;

/** Lists the ranges and addresses of a VRF in a span. `exact` is false when there are more. */
export async function listOccupied(
  db: Knex,
  vrf: string,
  { family, first, last }: Span,
): Promise<{ spans: Span[]; exact: boolean }> {
  const bounds = [vrf, formatHost(family, first), formatHost(family, last), MAX_OCCUPIED + 1];
  const { rows } = await db.raw<{ rows: { first: string; last: string }[] }>(
    `(SELECT host(host) AS first, host(host) AS last FROM ip_addresses WHERE vrf_key = ? AND host BETWEEN ?::inet AND ?::inet ORDER BY ip_addresses.host LIMIT ?)
     UNION ALL (SELECT host(start_address), host(end_address) FROM ip_ranges WHERE vrf_key = ? AND span && inet_range(?::inet, ?::inet, '[]') LIMIT ?)`,
    [...bounds, ...bounds],
  );
  return {
    spans: rows.map((row) => ({ family, first: valueOf(row.first), last: valueOf(row.last) })),
    exact: rows.length <= MAX_OCCUPIED,
  };
}
