import { listOccupied } from '../../db/inventory/freeSpace.ts';
import {
  listContents,
  listPrefixesInside,
  type InsidePrefix,
} from '../../db/inventory/prefixMap.ts';
import { listRecords } from '../../db/inventory/records.ts';
import { readUsage, type Usage } from '../../db/inventory/usage.ts';
import {
  addressBits,
  contains,
  eachCoveringBlock,
  blockAt,
  formatBlock,
  gapsIn,
  isBlock,
  mergeSpans,
  parseBlock,
  type Block,
  type Span,
} from '../../domain/inventory/cidr.ts';
import { isReadable } from '../../domain/inventory/ownership.ts';
import { blockOf } from '../../domain/inventory/prefixTree.ts';
import type { Row } from '../../domain/inventory/resource.ts';
import { columnKindOf } from '../../domain/inventory/lists.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { invalidField, notFound } from '../../domain/shared/errors.ts';
import { pageOf, type ListKey } from '../../domain/shared/lists.ts';
import { createPause } from '../../platform/turns.ts';
import { createAllocate } from './allocations.ts';

export type { Usage } from '../../db/inventory/usage.ts';

/** Larger maps have the largest prefixes only; a part of the network has the others. */
export const MAX_MAPPED = 20_000;

/** Most free networks of one answer. */
export const MAX_FREE = 5_000;

/** Most addresses, and most ranges, of one answer. */
export const MAX_CONTENTS = 5_000;

export type AddressSpace = ReturnType<typeof createAddressSpace>;

/** A child in a tree. Its id and row are null when the caller may not read it. */
export type TreeChild = { cidr: string; id: string | null; row: Row | null; usage: Usage };

type Deps = Parameters<typeof createAllocate>[0];

/** Follows every id of a record (COLLATE "C"). */
const AFTER_ALL_IDS = '~';

const EVERYWHERE = { kind: 'everywhere' } as const;
const { prefixes } = RESOURCES;

/** The contents and the free space of prefixes. */
export function createAddressSpace(deps: Deps) {
  const { db, access, records } = deps;

  /** Lists the free networks of one page of a tree: outside its children, ranges and addresses. */
  async function freeNetworks(
    prefix: Row,
    children: readonly Row[],
    page: Span | null,
    signal: AbortSignal | undefined,
  ): Promise<{ free: string[]; exact: boolean; complete: boolean }> {
    if (!page) return { free: [], exact: true, complete: true };
    const { spans, exact } = await listOccupied(db, prefix.id, page);
    // A few thousand addresses in a /64 leave hundreds of thousands of networks.
    const pause = createPause({ signal });
    const free: string[] = [];
    for (const gap of gapsIn(page, mergeSpans([...children.map(blockOf), ...spans])))
      for (const block of eachCoveringBlock(gap)) {
        if (free.length === MAX_FREE) return { free, exact, complete: false };
        free.push(formatBlock(block));
        await pause();
      }
    return { free, exact, complete: true };
  }

  /**
   * The largest child that contains a network: a page that starts there does not list it. Where tenants use
   * a prefix of the platform, a child of one may contain those of others.
   */
  async function childAround(prefix: Row, network: Block): Promise<Row[]> {
    const { family, first, length } = network;
    const outer = blockOf(prefix).length + 1;
    const contains = Array.from({ length: Math.max(0, length - outer) }, (_, i) =>
      formatBlock(blockAt(family, first, outer + i)),
    );
    if (contains.length === 0) return [];
    const { items } = await listRecords(
      db,
      prefixes,
      EVERYWHERE,
      { contains },
      {
        ...pageOf(1, undefined),
        where: [
          { ...columnKindOf(prefixes, 'parentPrefixId'), operator: 'in', values: [prefix.id] },
        ],
        sort: { ...columnKindOf(prefixes, 'cidr'), descending: false },
      },
    );
    return items;
  }

  /** Reads the children of a page in order, whatever the caller may read. */
  async function childrenOf(prefix: Row, { limit, after, from, before }: TreePart) {
    const compared = (operator: 'gte' | 'lt', network: Block) => ({
      ...columnKindOf(prefixes, 'cidr'),
      operator,
      values: [formatBlock(network)],
    });
    const { items, next } = await listRecords(
      db,
      prefixes,
      EVERYWHERE,
      {},
      {
        ...pageOf(limit, after),
        where: [
          { ...columnKindOf(prefixes, 'parentPrefixId'), operator: 'in', values: [prefix.id] },
          ...(from ? [compared('gte', from)] : []),
          ...(before ? [compared('lt', before)] : []),
        ],
        sort: { ...columnKindOf(prefixes, 'cidr'), descending: before !== undefined },
      },
    );
    // What comes before is read backwards, and has no page after it.
    return before
      ? { items: items.toReversed(), next: null, isFirst: next === null }
      : { items, next, isFirst: false };
  }

  /**
   * Where the next page of children starts. It does not name a child that the caller may not read, unless another
   * one of the same network follows, which a VRF can allow.
   */
  async function nextOf(prefix: Row, next: ListKey | null, last: TreeChild | undefined) {
    if (!next || last?.id !== null) return next;
    const { items } = await childrenOf(prefix, {
      limit: 1,
      after: { id: next.id, value: String(next.value) },
    });
    return items[0]?.cidr === last.cidr ? next : { ...next, id: AFTER_ALL_IDS };
  }

  return {
    allocate: createAllocate(deps),

    /** Reads the usage of a prefix. Error: `not_found`. */
    async usage(caller: Caller, prefixId: string): Promise<Usage> {
      const prefix = await records.read(caller, 'prefixes', prefixId);
      return usageOf(await readUsage(db, [prefix.id]), prefix.id);
    },

    /**
     * Reads the prefixes of all levels in a prefix, or in the network `within` of it: the largest first,
     * equally large ones by network. `complete` is false when there are more than 20,000. The id and the
     * status of a prefix are null when the caller may not read it. Errors: `not_found`,
     * `invalid_request` when `within` is no network of the prefix.
     */
    async map(
      caller: Caller,
      prefixId: string,
      within: string | undefined,
    ): Promise<{ network: string; prefixes: InsidePrefix[]; complete: boolean }> {
      const prefix = await records.read(caller, 'prefixes', prefixId);
      const whole = blockOf(prefix);
      const network = within === undefined ? whole : networkIn(whole, within);
      const scope = access.scope(caller, 'inventory:read');
      const found = await listPrefixesInside(db, scope, prefix.id, network, MAX_MAPPED + 1);
      return {
        network: formatBlock(network),
        prefixes: found.slice(0, MAX_MAPPED),
        complete: found.length <= MAX_MAPPED,
      };
    },

    /** Reads the usage of prefixes that the caller has read. Ids of none are left out. */
    usages: (prefixIds: readonly string[]): Promise<Map<string, Usage>> => readUsage(db, prefixIds),

    /**
     * Reads a prefix, one page of its children in order, and the free networks between them. A page
     * continues after the network of `after`, starts at the network `from`, or ends before the network
     * `before`. `complete` is false when there are more than 5,000 free networks. Errors: `not_found`;
     * `invalid_request` when one of these is no network of the prefix.
     */
    async tree(
      caller: Caller,
      prefixId: string,
      {
        from,
        before,
        ...page
      }: Omit<TreePart, 'from' | 'before'> & { from?: string; before?: string },
      signal?: AbortSignal,
    ) {
      const prefix = await records.read(caller, 'prefixes', prefixId);
      const scope = access.scope(caller, 'inventory:read');
      const whole = blockOf(prefix);
      const part: TreePart = {
        ...page,
        ...(from !== undefined && { from: networkIn(whole, from, 'from') }),
        ...(before !== undefined && { before: networkIn(whole, before, 'before') }),
      };
      const { items, next, isFirst } = await childrenOf(prefix, part);
      const usages = await readUsage(db, [prefix.id, ...items.map(({ id }) => id)]);
      const children = items.map((row): TreeChild => {
        const canRead = isReadable(scope, prefixes, row);
        return {
          cidr: String(row.cidr),
          id: canRead ? row.id : null,
          row: canRead ? row : null,
          usage: usageOf(usages, row.id),
        };
      });
      const blocks = items.map(blockOf);
      const span = part.before
        ? spanBefore(whole, blocks, part.before, isFirst)
        : spanAfter(whole, blocks, part, next === null);
      const around = span ? await childAround(prefix, hostBlock(span)) : [];
      return {
        prefix,
        usage: usageOf(usages, prefix.id),
        children,
        ...(await freeNetworks(prefix, [...around, ...items], span, signal)),
        next: await nextOf(prefix, next, children.at(-1)),
      };
    },

    /**
     * Reads the addresses and ranges in a prefix, or in the network `within` of it, by address: those
     * that count in it. `complete` is false when there are more than are listed. What the caller may not
     * read has no id. Errors: as of `map`.
     */
    async contents(caller: Caller, prefixId: string, within: string | undefined) {
      const prefix = await records.read(caller, 'prefixes', prefixId);
      const whole = blockOf(prefix);
      const network = within === undefined ? whole : networkIn(whole, within);
      const scope = access.scope(caller, 'inventory:read');
      const found = await listContents(db, scope, prefix.id, network, MAX_CONTENTS + 1);
      return {
        network: formatBlock(network),
        addresses: found.addresses.slice(0, MAX_CONTENTS),
        ranges: found.ranges.slice(0, MAX_CONTENTS),
        complete: Math.max(found.addresses.length, found.ranges.length) <= MAX_CONTENTS,
      };
    },
  };
}

/** A page of children: what follows a child, starts at a network, or ends before a network. */
type TreePart = {
  limit: number;
  after?: { value: string; id: string } | undefined;
  from?: Block;
  before?: Block;
};

/** Parses a network of a prefix in a query parameter. Error: `invalid_request`. */
function networkIn(whole: Block, text: string, name = 'within'): Block {
  const network = parseBlock(text);
  if (!isBlock(network)) throw invalidField('query', `/${name}`, network.code, network.message);
  if (!contains(whole, network))
    throw invalidField('query', `/${name}`, 'range', `must be a network in ${formatBlock(whole)}`);
  return network;
}

function usageOf(usages: ReadonlyMap<string, Usage>, id: string): Usage {
  const usage = usages.get(id);
  if (!usage) throw notFound('prefix', id);
  return usage;
}

/** The first address of a span as a network. */
const hostBlock = ({ family, first }: Span): Block => blockAt(family, first, addressBits(family));

const spanOf = ({ family }: Block, first: bigint, last: bigint): Span | null =>
  first > last ? null : { family, first, last };

/**
 * The part of a prefix that one page of its children covers: from the end of the network `after`, or the
 * start of `from`, to the end of the last child or, on the last page, of the prefix. Null when it is empty.
 */
function spanAfter(
  whole: Block,
  children: readonly Block[],
  { after, from }: TreePart,
  isLast: boolean,
): Span | null {
  const previous = after === undefined ? undefined : parseBlock(after.value);
  const start = from?.first ?? whole.first;
  const first = previous && isBlock(previous) ? previous.last + 1n : start;
  return spanOf(whole, first, isLast ? whole.last : (children.at(-1)?.last ?? whole.last));
}

/** The same for a page that ends before a network: from its first child or the start of the prefix. */
function spanBefore(
  whole: Block,
  children: readonly Block[],
  before: Block,
  isFirst: boolean,
): Span | null {
  const first = isFirst ? whole.first : (children[0]?.first ?? whole.first);
  return spanOf(whole, first, before.first - 1n);
}
