import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';
import type { RecordChange } from '../core/unitOfWork.ts';
import {
  addressBits,
  blockAt,
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

/**
 * Occupied spans in order. All addresses from the one that was asked for to `start` are occupied too;
 * it is null when all are. Spans that start after `knownUntil` may be missing.
 */
type Occupied = {
  start: bigint | null;
  spans: { first: bigint; last: bigint }[];
  knownUntil: bigint;
};

/**
 * The number of rows of each kind in the first query; later queries read more, up to a maximum. It
 * reads what remains of a block of 256 that is not full.
 */
const INITIAL_BATCH = 256;
const MAX_BATCH = 50_000;

const valueOf = (text: string): bigint => {
  const host = parseHost(text);
  if (!host) throw new Error('PostgreSQL returned an invalid address');
  return host.value;
};

/** The address space of a prefix. In a prefix that the platform assigns from, the records of all tenants count. */
export type Position = { vrf: string; space: string; shared: string | null };

/**
 * SQL: whether a row of a group comes after the start of the search, `orAt` or is there, and is not after
 * `end`. Comparing both columns together keeps PostgreSQL from reading an index that has the networks of
 * all groups.
 */
const isSearched = (group: string, key: string, network: string, end: string, orAt = '') =>
  `(${group}, ${network}) >${orAt} (${key}, (SELECT address FROM search)) AND (${group}, ${network}) <= (${key}, ${end})`;

/** SQL: the column and the value that the contents of a prefix have. */
export const contentsKey = ({ vrf, space, shared }: Position): [column: string, value: string] =>
  space === shared ? ['vrf_key', vrf] : ['space_key', space];

/** The space of the platform beside that of a tenant: in the prefix of a tenant, what it has is occupied as well. */
const besideOf = ({ space, shared }: Position): string | null => (space === shared ? null : shared);

/** Reads where a prefix is; undefined if there is none. */
export async function findPosition(db: Knex, prefixId: string): Promise<Position | undefined> {
  const { rows } = await db.raw<{ rows: Position[] }>(
    'SELECT vrf_key AS vrf, space_key AS space, shared_space(space_key) AS shared FROM prefixes WHERE id = ?',
    [prefixId],
  );
  return rows[0];
}

/**
 * Loads the children, ranges and addresses from address `from`, up to `limit` of each kind. Blocks
 * whose addresses are all used are skipped without reading these.
 */
async function loadOccupied(
  trx: Knex,
  position: Position,
  equalPrefixIds: readonly string[],
  whole: Block,
  from: bigint,
  limit: number,
): Promise<Occupied> {
  const [column, key] = contentsKey(position);
  const beside = besideOf(position);
  const end = formatHost(whole.family, whole.last);
  const ids = [...equalPrefixIds];
  // A child that contains the start sorts before it, so it is found by all networks that it can be.
  const containing = `cidr = ANY (supernets((SELECT address FROM search))) AND masklen(cidr) > ?`;
  const { rows } = (await prepared(
    trx,
    `WITH search AS MATERIALIZED (SELECT skip_used_blocks(?, ?, ?::inet, ?::inet) AS address)
      SELECT 's' AS kind, host(address) AS first, host(address) AS last FROM search
      UNION ALL (SELECT 'c', host(cidr), host(broadcast(cidr)) FROM prefixes WHERE parent_prefix_id = ANY (?::text[]) AND ${containing})
      UNION ALL (SELECT 'p', host(c.cidr), host(broadcast(c.cidr)) FROM unnest(?::text[]) AS parent (id) CROSS JOIN LATERAL (
        SELECT cidr FROM prefixes WHERE ${isSearched('parent_prefix_id', 'parent.id', 'cidr', '?::inet')} ORDER BY parent_prefix_id, cidr LIMIT ?) AS c ORDER BY c.cidr LIMIT ?)
      UNION ALL (SELECT 'c', host(cidr), host(broadcast(cidr)) FROM prefixes WHERE space_key = ? AND ${containing})
      UNION ALL (SELECT 'q', host(cidr), host(broadcast(cidr)) FROM prefixes WHERE ${isSearched('space_key', '?', 'cidr', '?::inet')} ORDER BY space_key, cidr LIMIT ?)
      UNION ALL (SELECT 'a', host(host), host(host) FROM ip_addresses WHERE ${isSearched(column, '?', 'host', '?::inet', '=')} ORDER BY ${column}, ip_addresses.host LIMIT ?)
      UNION ALL (SELECT 'r', host(start_address), host(end_address) FROM ip_ranges
        WHERE ${column} = ? AND span && inet_range((SELECT address FROM search), ?::inet, '[]') ORDER BY lower(span) LIMIT ?)`,
    [
      ...[position.vrf, beside === null && position.shared !== null ? null : position.space],
      ...[formatHost(whole.family, from), end],
      ...[ids, whole.length],
      ...[ids, end, limit, limit],
      ...[beside, whole.length],
      ...[beside, beside, end, limit],
      ...[key, key, end, limit],
      ...[key, end, limit],
    ],
  )) as { rows: { kind: string; first: string | null; last: string }[] };
  const start = rows.find(({ kind }) => kind === 's')?.first ?? null;
  if (start === null) return { start, spans: [], knownUntil: whole.last };
  const spans = rows.filter(isSpan).map(({ kind, first, last }) => ({
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
    start: valueOf(start),
    spans: spans.sort((a, b) => (a.first < b.first ? -1 : a.first > b.first ? 1 : 0)),
    knownUntil,
  };
}

type FoundSpan = { kind: string; first: string; last: string };
const isSpan = (row: Omit<FoundSpan, 'first'> & { first: string | null }): row is FoundSpan =>
  row.kind !== 's' && row.first !== null;

/** What is searched: single addresses, or networks of a length. */
export type Wanted = { length: number; isAddress: boolean };

/** The length of hints for networks of one address: those for addresses leave out two of a prefix. */
const ONE_ADDRESS = 0;

const hintLengthOf = ({ length, isAddress }: Wanted, { family }: Block): number =>
  !isAddress && length === addressBits(family) ? ONE_ADDRESS : length;

/**
 * Where a prefix is, the ids of all prefixes with its network, itself included, and the address
 * below which hints of a length say that it has no free block.
 */
async function findEqualPrefixes(
  trx: Knex,
  prefix: Row,
  hintLength: number,
): Promise<{ position: Position; equalPrefixIds: string[]; hint: bigint | undefined }> {
  const { rows } = (await prepared(
    trx,
    `SELECT p.id, p.space_key AS space, shared_space(p.space_key) AS shared, host(h.next_free) AS next
      FROM prefixes AS p LEFT JOIN free_hints AS h ON h.prefix_id = p.id AND h.prefix_id = ? AND h.length = ?
      WHERE p.vrf_key = ? AND p.cidr = ?::cidr`,
    [prefix.id, hintLength, vrfKeyOf(prefix), String(prefix.cidr)],
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
 * Finds the lowest blocks in a prefix, up to `count`, that overlap no child, range or address. A single
 * address is never the network or broadcast address; a child prefix of one address can be.
 *
 * The transaction must hold the lock of the space. `whole` is the network of the prefix.
 */
export async function findFreeBlocks(
  trx: Knex,
  prefix: Row,
  whole: Block,
  wanted: Wanted,
  count: number,
): Promise<Block[]> {
  // The children of all prefixes with this network are occupied.
  const { position, equalPrefixIds, hint } = await findEqualPrefixes(
    trx,
    prefix,
    hintLengthOf(wanted, whole),
  );
  const search = (from: bigint | undefined) =>
    findFrom(trx, { position, equalPrefixIds, whole, wanted, from, count });
  const found = await search(hint);
  // A hint can be out of date when a tenant's change has skipped it.
  return found.length < count && hint !== undefined ? search(undefined) : found;
}

/** Finds the lowest free blocks at or above an address. */
async function findFrom(
  trx: Knex,
  {
    position,
    equalPrefixIds,
    whole,
    wanted: { length, isAddress },
    from,
    count,
  }: {
    position: Position;
    equalPrefixIds: readonly string[];
    whole: Block;
    wanted: Wanted;
    from: bigint | undefined;
    count: number;
  },
): Promise<Block[]> {
  const size = sizeOfLength(whole.family, length);
  const lastUsable = isAddress && isReserved(whole, whole.last) ? whole.last - 1n : whole.last;
  const aligned = (value: bigint): bigint => ((value + size - 1n) / size) * size;
  const found: Block[] = [];
  let candidate = aligned(
    from ??
      (isAddress && whole.length < addressBits(whole.family) - 1 ? whole.first + 1n : whole.first),
  );
  /** Takes what is free from the candidate to an address. */
  const takeUntil = (last: bigint) => {
    for (; found.length < count && candidate + size - 1n <= last; candidate += size)
      found.push(blockAt(whole.family, candidate, length));
  };
  for (
    let limit = INITIAL_BATCH;
    found.length < count && candidate + size - 1n <= lastUsable;
    limit = Math.min(limit * 4, MAX_BATCH)
  ) {
    const { start, spans, knownUntil } = await loadOccupied(
      trx,
      position,
      equalPrefixIds,
      whole,
      candidate,
      limit,
    );
    if (start === null) break;
    if (start > candidate) candidate = aligned(start);
    for (const { first, last } of spans) {
      if (first > knownUntil) break;
      takeUntil(first - 1n < lastUsable ? first - 1n : lastUsable);
      if (last >= candidate) candidate = aligned(last + 1n);
    }
    takeUntil(knownUntil < lastUsable ? knownUntil : lastUsable);
    if (knownUntil === whole.last) break;
  }
  return found;
}

/**
 * Stores, with the final statement of a commit, that a prefix has no free block of this kind and length below
 * the end of `block`.
 */
export function freeHintChange(prefix: Row, block: Block, isAddress: boolean): RecordChange {
  const next = block.last + 1n;
  const isPastEnd = next >= 1n << BigInt(addressBits(block.family));
  return {
    sql: (name) => `${name} AS (
      INSERT INTO free_hints (prefix_id, length, vrf_key, space_key, cidr, next_free)
        SELECT id, ?, vrf_key, space_key, cidr, ?::inet FROM prefixes WHERE id = ? AND ?
      ON CONFLICT (prefix_id, length) DO UPDATE SET next_free = excluded.next_free RETURNING 1)`,
    bindings: [
      hintLengthOf({ length: block.length, isAddress }, block),
      formatHost(block.family, isPastEnd ? block.last : next),
      prefix.id,
      !isPastEnd,
    ],
    topics: [],
    optional: true,
  };
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
  const position = await findPosition(db, prefixId);
  if (!position) return { spans: [], exact: true };
  const [column, key] = contentsKey(position);
  const beside = besideOf(position);
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
