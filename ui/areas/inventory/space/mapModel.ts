import {
  addressBits,
  blockAt,
  contains,
  coveringBlocks,
  formatBlock,
  overlaps,
  parseHost,
  type Block,
  type Span,
} from '../../../../domain/inventory/cidr.ts';
import { rectOf, type Rect } from './mapLayout.ts';
import { byNetwork, networkOf } from './networks.ts';

/** A prefix as a map has it. The id and the status are null where the user may not read it. */
export type MappedPrefix = { cidr: string; id: string | null; status: string | null };

export type MapNode = {
  prefix: MappedPrefix;
  block: Block;
  rect: Rect;
  parent: MapNode | null;
  /** The prefixes directly in it, by network. */
  children: MapNode[];
};

/** The addresses and ranges in a network, as the API has them. */
export type MappedContents = {
  addresses: readonly { address: string; status: string | null }[];
  ranges: readonly { start: string; end: string; status: string | null }[];
};

/** A single address, or a part of a range; `holder` is the area of the prefix that it is in. */
export type MapMark = {
  kind: 'address' | 'range';
  rect: Rect;
  holder: Rect;
  status: string | null;
};

/** What can be chosen on a map: a prefix, or a network in one that has no prefix that was read. */
export type MapItem = { cidr: string; block: Block; rect: Rect } & (
  { node: MapNode } | { node: null; parent: MapNode }
);

export type MapModel = ReturnType<typeof createMapModel>;

const isFullOf = ({ children }: MapNode): boolean => children.length > 0;

const byId = ({ id }: MappedPrefix, other: MappedPrefix): number =>
  (id ?? '').localeCompare(other.id ?? '');

/** True for a prefix that follows itself, as parts of a map that were read one by one may overlap. */
const isDouble = ({ prefix }: MapNode, before: MapNode | undefined): boolean =>
  before?.prefix.cidr === prefix.cidr && before.prefix.id === prefix.id;

/** Prefixes as the tree that their networks make, the root first, and then by network. */
function nodesOf(root: MappedPrefix, whole: Block, prefixes: readonly MappedPrefix[]) {
  const found: MapNode[] = [];
  for (const prefix of prefixes) {
    const block = networkOf(prefix.cidr);
    if (block && contains(whole, block))
      found.push({ prefix, block, rect: rectOf(whole, block), parent: null, children: [] });
  }
  found.sort((one, other) => byNetwork(one.block, other.block) || byId(one.prefix, other.prefix));
  const nodes = found.filter((node, at) => !isDouble(node, found[at - 1]));
  const top: MapNode = {
    ...{ prefix: root, block: whole, rect: rectOf(whole, whole) },
    ...{ parent: null, children: [] },
  };
  let parent = top;
  for (const node of nodes) {
    while (parent !== top && !contains(parent.block, node.block)) parent = parent.parent ?? top;
    node.parent = parent;
    parent.children.push(node);
    parent = node;
  }
  return { top, nodes: [top, ...nodes] };
}

/** The index of the last of `nodes` that starts at or before an address; -1 if there is none. */
function lastStartingBefore(nodes: readonly MapNode[], address: bigint): number {
  let [low, high] = [0, nodes.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const node = nodes[middle];
    if (node && node.block.first <= address) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The largest free network around an address in a prefix, which is in none of its children. */
function freeAt(parent: MapNode, address: bigint): Block {
  const { children, block } = parent;
  const at = lastStartingBefore(children, address);
  // Among several with the same first address the largest comes first.
  const before = at < 0 ? undefined : children[at];
  const first = before ? before.block.last + 1n : block.first;
  const last = (children[at + 1]?.block.first ?? block.last + 1n) - 1n;
  let length = block.length;
  let found = blockAt(block.family, address, length);
  while (found.first < first || found.last > last)
    found = blockAt(block.family, address, (length += 1));
  return found;
}

function addressMarks(model: MapModel, { addresses }: MappedContents): Map<bigint, MapMark> {
  const { whole, holderOf } = model;
  const marks = new Map<bigint, MapMark>();
  for (const { address, status } of addresses) {
    const host = parseHost(address);
    if (host?.family !== whole.family) continue;
    const block = blockAt(host.family, host.value, addressBits(host.family));
    if (contains(whole, block))
      marks.set(host.value, {
        ...{ kind: 'address', rect: rectOf(whole, block), status },
        holder: holderOf(host.value),
      });
  }
  return marks;
}

type MappedRange = { span: Span; status: string | null };

/** The ranges of a map, as far as they are in it. */
const rangesIn = (whole: Block, { ranges }: MappedContents): MappedRange[] =>
  ranges.flatMap(({ start, end, status }) => {
    const [first, last] = [parseHost(start), parseHost(end)];
    if (!first || !last) return [];
    const span = { family: first.family, first: first.value, last: last.value };
    if (!overlaps(whole, span)) return [];
    const inside = {
      family: whole.family,
      first: span.first < whole.first ? whole.first : span.first,
      last: span.last > whole.last ? whole.last : span.last,
    };
    return [{ span: inside, status }];
  });

/** Ranges as the fewest networks that together are each: parts of a map are networks. */
const rangeMarks = ({ whole, holderOf }: MapModel, ranges: readonly MappedRange[]): MapMark[] =>
  ranges.flatMap(({ span, status }) =>
    coveringBlocks(span).map((block): MapMark => ({
      ...{ kind: 'range', rect: rectOf(whole, block), status },
      holder: holderOf(block.first),
    })),
  );

const isIn = (block: Block, networks: readonly Block[]): boolean =>
  networks.some((network) => contains(network, block));

/**
 * The addresses and ranges that a map shows. They are read after its prefixes; `read` has the networks of which all
 * are known.
 */
export function createMarks(model: MapModel, contents: MappedContents, read: readonly Block[]) {
  const addresses = addressMarks(model, contents);
  const ranges = rangesIn(model.whole, contents);
  const values = [...addresses.keys()];
  return {
    /** The ranges first: addresses are drawn on them. */
    all: [...rangeMarks(model, ranges), ...addresses.values()],
    at: (address: bigint): MapMark | undefined => addresses.get(address),
    isRead: (block: Block): boolean => isIn(block, read),
    hasAddress: ({ first, last }: Block): boolean =>
      values.some((value) => first <= value && value <= last),
    rangesIn: (block: Block): Span[] =>
      ranges.flatMap(({ span }) => (overlaps(block, span) ? [span] : [])),
  };
}

export type MapMarks = ReturnType<typeof createMarks>;

/**
 * The map of a prefix, whose network is `whole`: the prefixes in it as rectangles, and what is at an address. `prefixes`
 * may have some twice, if they were read in parts; `read` has the networks of which all prefixes are known.
 */
export function createMapModel(
  root: MappedPrefix,
  whole: Block,
  prefixes: readonly MappedPrefix[],
  read: readonly Block[],
) {
  const { top, nodes } = nodesOf(root, whole, prefixes);
  const byCidr = new Map(nodes.map((node) => [node.prefix.cidr, node]));
  const itemOf = (node: MapNode): MapItem => ({
    ...{ cidr: node.prefix.cidr, block: node.block, rect: node.rect },
    node,
  });

  /** The innermost prefix that has an address. */
  const nodeAt = (address: bigint): MapNode => {
    let node = nodes[lastStartingBefore(nodes, address)] ?? top;
    while (node.block.last < address) node = node.parent ?? top;
    return node;
  };

  const freeItem = (parent: MapNode, block: Block): MapItem => ({
    ...{ cidr: formatBlock(block), block, rect: rectOf(whole, block) },
    ...{ node: null, parent },
  });

  /** The part of `parent` that has an address: one of its children, or a free network. */
  const partAt = (parent: MapNode, address: bigint): MapItem => {
    const child = parent.children[lastStartingBefore(parent.children, address)];
    if (child && child.block.last >= address) return itemOf(child);
    return freeItem(parent, freeAt(parent, address));
  };

  const parentOf = (item: MapItem): MapNode | null => (item.node ? item.node.parent : item.parent);

  const beside = (item: MapItem, address: bigint): MapItem | undefined => {
    const parent = parentOf(item);
    const isInside = parent && parent.block.first <= address && address <= parent.block.last;
    return isInside ? partAt(parent, address) : undefined;
  };

  return {
    whole,
    nodes,
    root: top,
    isRead: (block: Block): boolean => isIn(block, read),

    /** What is at an address, if it is drawn larger than `isDrawn` asks for, or what it is in. */
    itemAt(address: bigint, isDrawn: (rect: Rect) => boolean): MapItem {
      let node = nodeAt(address);
      while (node.parent && !isDrawn(node.rect)) node = node.parent;
      if (!isFullOf(node)) return itemOf(node);
      const part = partAt(node, address);
      return part.node === null && isDrawn(part.rect) ? part : itemOf(node);
    },

    /** The area of the innermost prefix that has an address. */
    holderOf: (address: bigint): Rect => nodeAt(address).rect,

    /** An address by itself, in the innermost prefix that has it. */
    addressAt: (address: bigint): MapItem =>
      freeItem(nodeAt(address), blockAt(whole.family, address, addressBits(whole.family))),

    /** The prefix with a network, or the network as a free one; undefined outside the map. */
    find(block: Block): MapItem | undefined {
      if (!contains(whole, block)) return undefined;
      const known = byCidr.get(formatBlock(block));
      if (known) return itemOf(known);
      let parent = nodeAt(block.first);
      while (parent.parent && !contains(parent.block, block)) parent = parent.parent;
      return freeItem(parent, block);
    },

    next: (item: MapItem) => beside(item, item.block.last + 1n),
    previous: (item: MapItem) => beside(item, item.block.first - 1n),
    /** The first part of a prefix that has any. */
    inside: ({ node }: MapItem): MapItem | undefined =>
      node && isFullOf(node) ? partAt(node, node.block.first) : undefined,
    around(item: MapItem): MapItem | undefined {
      const parent = parentOf(item);
      return parent ? itemOf(parent) : undefined;
    },
    /** The prefixes that contain an item, the outermost first. */
    pathTo(item: MapItem): MapNode[] {
      const path: MapNode[] = [];
      for (let node = parentOf(item); node; node = node.parent) path.unshift(node);
      return path;
    },
  };
}
