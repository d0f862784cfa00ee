import { listOccupied } from '../../db/inventory/freeSpace.ts';
import { listPrefixesInside, type InsidePrefix } from '../../db/inventory/prefixMap.ts';
import { listRecords } from '../../db/inventory/records.ts';
import { readUsage, type Usage } from '../../db/inventory/usage.ts';
import {
  contains,
  coveringBlocks,
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
import { pageOf } from '../../domain/shared/lists.ts';
import { createAllocate } from './allocations.ts';

export type { Usage } from '../../db/inventory/usage.ts';

/** Larger maps have the largest prefixes only; a part of the network has the others. */
export const MAX_MAPPED = 20_000;

export type AddressSpace = ReturnType<typeof createAddressSpace>;

/** A child in a tree. Its id and row are null when the caller may not read it. */
export type TreeChild = { cidr: string; id: string | null; row: Row | null; usage: Usage };

type Deps = Parameters<typeof createAllocate>[0];

const EVERYWHERE = { kind: 'everywhere' } as const;
const { prefixes } = RESOURCES;

/** The contents and the free space of prefixes. */
export function createAddressSpace(deps: Deps) {
  const { db, access, records } = deps;

  /** Lists the free networks of one page of a tree: outside its children, ranges and addresses. */
  async function freeNetworks(
    prefix: Row,
    children: readonly Row[],
    after: string | undefined,
    isLast: boolean,
  ): Promise<{ free: string[]; exact: boolean }> {
    const blocks = children.map(blockOf);
    const page = pageSpan(blockOf(prefix), blocks, after, isLast);
    if (!page) return { free: [], exact: true };
    const { spans, exact } = await listOccupied(db, prefix.id, page);
    const gaps = gapsIn(page, mergeSpans([...blocks, ...spans]));
    return { free: gaps.flatMap(coveringBlocks).map(formatBlock), exact };
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
     * continues after the network `after`. Error: `not_found`.
     */
    async tree(
      caller: Caller,
      prefixId: string,
      { after, limit }: { after: { value: string; id: string } | undefined; limit: number },
    ) {
      const prefix = await records.read(caller, 'prefixes', prefixId);
      const scope = access.scope(caller, 'inventory:read');
      const { items, next } = await listRecords(
        db,
        prefixes,
        EVERYWHERE,
        {},
        {
          ...pageOf(limit, after),
          where: [
            { ...columnKindOf(prefixes, 'parentPrefixId'), operator: 'in', values: [prefix.id] },
          ],
          sort: { ...columnKindOf(prefixes, 'cidr'), descending: false },
        },
      );
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
      return {
        prefix,
        usage: usageOf(usages, prefix.id),
        children,
        ...(await freeNetworks(prefix, items, after?.value, next === null)),
        next,
      };
    },
  };
}

/** Parses the network of a map. Error: `invalid_request`. */
function networkIn(whole: Block, text: string): Block {
  const network = parseBlock(text);
  if (!isBlock(network)) throw invalidField('query', '/within', network.code, network.message);
  if (!contains(whole, network))
    throw invalidField('query', '/within', 'range', `must be a network in ${formatBlock(whole)}`);
  return network;
}

function usageOf(usages: ReadonlyMap<string, Usage>, id: string): Usage {
  const usage = usages.get(id);
  if (!usage) throw notFound('prefix', id);
  return usage;
}

/**
 * The part of a prefix that one page of its children covers: from the end of the network `after`
 * to the end of the last child or, on the last page, of the prefix. Null when it is empty.
 */
function pageSpan(
  whole: Block,
  children: readonly Block[],
  after: string | undefined,
  isLast: boolean,
): Span | null {
  const previous = after === undefined ? undefined : parseBlock(after);
  const first = previous && isBlock(previous) ? previous.last + 1n : whole.first;
  const last = isLast ? whole.last : (children.at(-1)?.last ?? whole.last);
  return first > last ? null : { family: whole.family, first, last };
}
