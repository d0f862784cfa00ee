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
import { assertDefined } from '../../domain/shared/assert.ts';

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

/** Where a prefix is: what all tenants have counts in a prefix that the platform has to assign. */
type Position = { vrf: string; space: string; shared: string | null };

/** SQL: the column and the value that the contents of a prefix have. */
const contentsKey = ({ vrf, space, shared }: Position): [column: string, value: string] =>
  space === shared ? ['vrf_key', vrf] : ['space_key', space];

/** Loads the children, ranges and addresses from address `from`, up to `limit` of each kind. */
async function loadOccupied(
  trx: Knex,
  position: Position,
  equalPrefixIds: readonly string[],
  whole: Block,
  from: bigint,
  limit: number,
): Promise<Occupied> {
  const [column, key] = contentsKey(position);
  // In the prefix of a tenant, what the platform has is occupied as well.
  const beside = position.space === position.shared ? null : position.shared;
  const start = formatHost(whole.family, from);
  const end = formatHost(whole.family, whole.last);
  // A child that contains `from` sorts before it, so it is found by all networks that it can be.
  const containing = Array.from({ length: addressBits(whole.family) - whole.length }, (_, i) =>
    formatBlock(blockAt(whole.family, from, whole.length + 1 + i)),
  );
  const { rows } = (await prepared(
    trx,
    `(SELECT 'c' AS kind, host(cidr) AS first, host(broadcast(cidr)) AS last FROM prefixes WHERE parent_prefix_id = ANY (?::text[]) AND cidr = ANY (?::cidr[]))
      UNION ALL (SELECT 'p', host(cidr), host(broadcast(cidr)) FROM prefixes WHERE parent_prefix_id = ANY (?::text[]) AND cidr > ?::inet ORDER BY cidr LIMIT ?)
      UNION ALL (SELECT 'c', host(cidr), host(broadcast(cidr)) FROM prefixes WHERE space_key = ? AND cidr = ANY (?::cidr[]))
      UNION ALL (SELECT 'q', host(cidr), host(broadcast(cidr)) FROM prefixes WHERE space_key = ? AND cidr > ?::inet AND cidr <= ?::inet ORDER BY cidr LIMIT ?)
      UNION ALL (SELECT 'a', host(host), host(host) FROM ip_addresses WHERE ${column} = ? AND host BETWEEN ?::inet AND ?::inet ORDER BY ip_addresses.host LIMIT ?)
      UNION ALL (SELECT 'r', host(start_address), host(end_address) FROM ip_ranges
        WHERE ${column} = ? AND span && inet_range(?::inet, ?::inet, '[]') ORDER BY start_address LIMIT ?)`,
    [
      ...[[...equalPrefixIds], containing],
      ...[[...equalPrefixIds], start, limit],
      ...[beside, containing],
      ...[beside, start, end, limit],
      ...[key, start, end, limit],
      ...[key, start, end, limit],
    ],
  )) as { rows: { kind: string; first: string; last: string }[] };
  const spans = rows.map(({ kind, first, last }) => ({
    kind,
    first: valueOf(first),
    last: valueOf(last),
  }));
  // A kind with as many rows as its limit may have more after the last.
  const limits = ['p', 'q', 'a', 'r'].flatMap((kind) => {
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
 * Where a prefix is, the ids of all prefixes with its network, itself included, and the address
 * below which it has no free block of a length.
 */
async function findEqualPrefixes(
  trx: Knex,
  prefix: Row,
  length: number,
): Promise<{ position: Position; equalPrefixIds: string[]; hint: bigint | undefined }> {
  const { rows } = (await prepared(
    trx,
    `SELECT p.id, p.space_key AS space, shared_space(p.space_key) AS shared, host(h.next_free) AS next
      FROM prefixes AS p LEFT JOIN free_hints AS h ON h.prefix_id = p.id AND h.prefix_id = ? AND h.length = ?
      WHERE p.vrf_key = ? AND p.cidr = ?::cidr`,
    [prefix.id, length, vrfKeyOf(prefix), String(prefix.cidr)],
  )) as { rows: { id: string; space: string; shared: string | null; next: string | null }[] };
  const own = assertDefined(
    rows.find(({ id }) => id === prefix.id),
    'prefix',
  );
  const position = { vrf: vrfKeyOf(prefix), space: own.space, shared: own.shared };
  const counts = ({ space }: { space: string }) => space === own.space || own.space === own.shared;
  const hint = rows.find(({ next }) => next !== null)?.next;
  return {
    position,
    equalPrefixIds: rows.filter(counts).map(({ id }) => id),
    hint: typeof hint === 'string' ? valueOf(hint) : undefined,
  };
}

/**
 * Finds the lowest block of `length` in a prefix that overlaps no child, range or address. A single
 * address is never the network or broadcast address. Null when there is no such block.
 *
 * The transaction must hold the lock of the space. `whole` is the network of the prefix.
 */
export async function findFreeBlock(
  trx: Knex,
  prefix: Row,
  whole: Block,
  length: number,
): Promise<Block | null> {
  // The children of all prefixes with this network are occupied.
  const { position, equalPrefixIds, hint } = await findEqualPrefixes(trx, prefix, length);
  const search = (from: bigint | undefined) =>
    findFrom(trx, { position, equalPrefixIds, whole, length, from });
  // A hint can be out of date when a tenant's change has skipped it.
  return (await search(hint)) ?? (hint === undefined ? null : await search(undefined));
}

/** Finds the lowest free block at or above an address. */
async function findFrom(
  trx: Knex,
  {
    position,
    equalPrefixIds,
    whole,
    length,
    from,
  }: {
    position: Position;
    equalPrefixIds: readonly string[];
    whole: Block;
    length: number;
    from: bigint | undefined;
  },
): Promise<Block | null> {
  const size = sizeOfLength(whole.family, length);
  const single = length === addressBits(whole.family);
  const lastUsable = single && isReserved(whole, whole.last) ? whole.last - 1n : whole.last;
  const aligned = (value: bigint): bigint => ((value + size - 1n) / size) * size;
  let candidate = aligned(
    from ??
      (single && whole.length < addressBits(whole.family) - 1 ? whole.first + 1n : whole.first),
  );
  for (
    let limit = INITIAL_BATCH;
    candidate + size - 1n <= lastUsable;
    limit = Math.min(limit * 4, MAX_BATCH)
  ) {
    const { spans, knownUntil } = await loadOccupied(
      trx,
      position,
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
    `INSERT INTO free_hints (prefix_id, length, vrf_key, space_key, cidr, next_free)
       SELECT id, ?, vrf_key, space_key, cidr, ?::inet FROM prefixes WHERE id = ?
     ON CONFLICT (prefix_id, length) DO UPDATE SET next_free = excluded.next_free`,
    [block.length, formatHost(block.family, block.last + 1n), prefix.id],
  );
}

/** The number of ranges, and of addresses, that are read to find the free space. */
const MAX_OCCUPIED = 4_096;

/**
 * Lists the ranges and addresses in a span of a prefix, and the prefixes of the platform there when
 * a tenant has it. `exact` is false when there are more.
 */
export async function listOccupied(
  db: Knex,
  prefixId: string,
  { family, first, last }: Span,
): Promise<{ spans: Span[]; exact: boolean }> {
  const found = await db.raw<{ rows: Position[] }>(
    'SELECT vrf_key AS vrf, space_key AS space, shared_space(space_key) AS shared FROM prefixes WHERE id = ?',
    [prefixId],
  );
  const [position] = found.rows;
  if (!position) return { spans: [], exact: true };
  const [column, key] = contentsKey(position);
  const beside = position.space === position.shared ? null : position.shared;
  const start = formatHost(family, first);
  const limits = [start, formatHost(family, last), MAX_OCCUPIED + 1];
  const { rows } = await db.raw<{ rows: { first: string; last: string }[] }>(
    `(SELECT host(host) AS first, host(host) AS last FROM ip_addresses WHERE ${column} = ? AND host BETWEEN ?::inet AND ?::inet ORDER BY ip_addresses.host LIMIT ?)
     UNION ALL (SELECT host(start_address), host(end_address) FROM ip_ranges WHERE ${column} = ? AND span && inet_range(?::inet, ?::inet, '[]') LIMIT ?)
     UNION ALL (SELECT host(s.cidr), host(broadcast(s.cidr)) FROM prefixes AS s JOIN prefixes AS p ON p.id = ? AND s.cidr << p.cidr
       WHERE s.space_key = ? AND s.cidr = ANY (supernets(?::inet)))
     UNION ALL (SELECT host(cidr), host(broadcast(cidr)) FROM prefixes WHERE space_key = ? AND cidr > ?::inet AND cidr <= ?::inet LIMIT ?)`,
    [key, ...limits, key, ...limits, prefixId, beside, start, beside, ...limits],
  );
  return {
    spans: rows.map((row) => ({ family, first: valueOf(row.first), last: valueOf(row.last) })),
    exact: rows.length <= MAX_OCCUPIED,
  };
}
