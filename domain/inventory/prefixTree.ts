import {
  addressBits,
  blockAt,
  contains,
  countReserved,
  formatBlock,
  isBlock,
  parseBlock,
  parseHost,
  type Block,
  type Span,
} from './cidr.ts';
import { PLATFORM } from '../access/scope.ts';
import type { Row } from './resource.ts';
import { vrfKeyOf, type PlannedChange, type PlanSnapshot } from './planSnapshot.ts';
import { SortedEntries } from './sortedEntries.ts';
import { isIn, isOfPlatform, isParentIn, type Space } from './spaces.ts';

/** A stored or planned prefix. */
export type PrefixNode = { row: Row; block: Block };

/** The network of each prefix as it was parsed last: the rules ask for it often. */
const blocks = new WeakMap<Row, { cidr: unknown; block: Block }>();

/** The network of a prefix. Stored networks are valid, so anything else is a bug. */
export function blockOf(row: Row): Block {
  const known = blocks.get(row);
  if (known && known.cidr === row.cidr) return known.block;
  const block = parseBlock(String(row.cidr));
  if (!isBlock(block)) throw new Error(`${row.id} has an invalid network`);
  blocks.set(row, { cidr: row.cidr, block });
  return block;
}

/** The addresses of a prefix, of an IP range or of a single address. */
export function spanOf(row: Row): Span {
  if (typeof row.cidr === 'string') return blockOf(row);
  const first = parseHost(String(row.startAddress ?? row.address).split('/')[0] ?? '');
  const last = parseHost(String(row.endAddress ?? row.address).split('/')[0] ?? '');
  if (!first || !last) throw new Error(`${row.id} has an invalid address`);
  return { family: first.family, first: first.value, last: last.value };
}

const networkKey = (vrf: string, block: Block): string =>
  `${vrf}|${block.family}|${block.first.toString(36)}|${block.length}`;

const lengthsKey = (vrf: string, { family }: Block): string => `${vrf}|${family}`;

/** Orders prefixes by their networks. */
export const byPosition = (one: PrefixNode, other: PrefixNode): number => {
  if (one.block.first !== other.block.first) return one.block.first < other.block.first ? -1 : 1;
  return one.block.length - other.block.length || (one.row.id < other.row.id ? -1 : 1);
};

/** True when two blocks have an address in common: then one contains the other. */
const overlap = (one: Block, other: Block): boolean => contains(one, other) || contains(other, one);

/** Where the node with an id is, or would be, among nodes in the order of their ids. */
function positionOf(nodes: readonly PrefixNode[], id: string): number {
  let [low, high] = [0, nodes.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((nodes[middle]?.row.id ?? '') < id) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The prefixes of each space by containment, as far as loaded, with the planned changes. */
export class PrefixTree {
  private readonly byNetwork = new Map<string, PrefixNode[]>();
  /** The number of prefixes by VRF and family, and by length: most lengths have none. */
  private readonly lengths = new Map<string, Uint32Array>();
  private readonly byParent = new Map<string, Map<string, PrefixNode>>();
  /** The prefixes of each VRF and family in the order of their networks. */
  private readonly byNetworkOrder = new Map<string, SortedEntries<PrefixNode>>();
  private readonly nodes = new Map<string, PrefixNode>();
  /** The prefixes of the platform by VRF and id. */
  private readonly shared = new Map<string, Map<string, PrefixNode>>();
  /** The number of addresses that planned changes use, by the id of their prefix. */
  private readonly usage = new Map<string, bigint>();
  private lastRequired: { block?: Block; vrf?: string; tenantId?: string } = {};
  private readonly snapshot: PlanSnapshot;

  constructor(snapshot: PlanSnapshot) {
    this.snapshot = snapshot;
    snapshot.subscribe((change) => this.applyChange(change));
  }

  /** The prefixes of a space whose network is `block`. */
  equalTo(space: Space, block: Block): PrefixNode[] {
    this.requireNeighbours(space, block);
    return (this.byNetwork.get(networkKey(space.vrf, block)) ?? []).filter(({ row }) =>
      isIn(space, row),
    );
  }

  /**
   * The smallest prefixes that strictly contain `block`, or equal it with `orEqual`: of the space,
   * else of the platform. There are several only when a VRF has the same network more than once.
   */
  smallestContaining(
    space: Space,
    block: Block,
    { orEqual = false, exclude }: { orEqual?: boolean; exclude?: string } = {},
  ): PrefixNode[] {
    this.requireNeighbours(space, block);
    for (const nodes of this.around(space.vrf, block, block.length - (orEqual ? 0 : 1))) {
      const found = nodes.filter(({ row }) => row.id !== exclude && isParentIn(space, row));
      if (found.length === 0) continue;
      const own = found.filter(({ row }) => isIn(space, row));
      return own.length > 0 ? own : found;
    }
    return [];
  }

  /** All prefixes that contain or equal `block` as a space sees it, the smallest first. */
  containing(space: Space, block: Block): PrefixNode[] {
    this.requireNeighbours(space, block);
    return this.inVrfAround(space.vrf, block).filter(({ row }) => isParentIn(space, row));
  }

  /** All prefixes of a VRF, of any tenant, that contain or equal `block`, the smallest first. */
  allContaining(vrf: string, block: Block): PrefixNode[] {
    this.snapshot.require({ kind: 'allAround', vrf, cidr: formatBlock(block) });
    return this.inVrfAround(vrf, block);
  }

  /** The smallest prefix that contains an address. */
  parentOf(space: Space, host: Span): PrefixNode | undefined {
    return this.smallestContaining(
      space,
      { ...host, length: addressBits(host.family) },
      { orEqual: true },
    )[0];
  }

  /**
   * The outermost prefixes inside `block`: children of `parents`, its smallest containers. A prefix
   * of the platform gets the children of all tenants, also those that have a larger parent of
   * their tenant.
   */
  outermostInside(space: Space, block: Block, parents: readonly PrefixNode[]): PrefixNode[] {
    this.requireNeighbours(space, block);
    const tenantParents = isOfPlatform(space)
      ? this.inVrfAround(space.vrf, block).filter(
          (node) => node.block.length < block.length && node.row.tenantId !== PLATFORM,
        )
      : [];
    const ids = [
      ...(parents.length === 0 ? [''] : parents.map(({ row }) => row.id)),
      ...tenantParents.map(({ row }) => row.id),
    ];
    // Most networks are empty: what is in this one is found by position, however many siblings it has.
    const found = (
      this.byNetworkOrder.get(lengthsKey(space.vrf, block))?.startingIn(block) ?? []
    ).filter(
      (node) =>
        node.block.length > block.length &&
        ids.includes((node.row.parentPrefixId as string | null) ?? '') &&
        (isOfPlatform(space) || isIn(space, node.row)),
    );
    // Plans list them, so that their order must not depend on what other tenants have.
    return found.sort(byPosition);
  }

  /** The children of a prefix of the platform, of any tenant, that overlap `block`. */
  assigned(prefix: Row, block: Block): PrefixNode[] {
    this.snapshot.require({ kind: 'assigned', prefixId: prefix.id, cidr: formatBlock(block) });
    return this.childrenOf(prefix).filter((node) => overlap(node.block, block));
  }

  /** The prefixes of the platform whose network is `block`, as parents in the space of a tenant. */
  sharedEqualTo(space: Space, block: Block): PrefixNode[] {
    this.requireNeighbours(space, block);
    return (this.byNetwork.get(networkKey(space.vrf, block)) ?? []).filter(
      ({ row }) => !isIn(space, row) && isParentIn(space, row),
    );
  }

  /** The prefixes of tenants whose network is that of a prefix of the platform. */
  tenantsEqualTo(space: Space, block: Block): PrefixNode[] {
    this.requireNeighbours(space, block);
    return (this.byNetwork.get(networkKey(space.vrf, block)) ?? []).filter(
      ({ row }) => row.tenantId !== PLATFORM,
    );
  }

  /** The prefixes of the platform that start in a span. */
  sharedInside({ vrf }: Space, span: Span, first: string, last: string): PrefixNode[] {
    this.snapshot.require({ kind: 'sharedInside', vrf, first, last });
    return [...(this.shared.get(vrf)?.values() ?? [])].filter(
      ({ block }) =>
        block.family === span.family && span.first <= block.first && block.first <= span.last,
    );
  }

  /** The children of a prefix; with `limit`, perhaps not more than that. */
  children(prefix: Row, limit?: number): PrefixNode[] {
    this.snapshot.require({
      kind: 'rows',
      resource: 'prefixes',
      fields: ['parentPrefixId'],
      values: [prefix.id],
      ...(limit !== undefined && { limit }),
    });
    return this.childrenOf(prefix).sort(byPosition);
  }

  /**
   * The number of used addresses in a prefix, with planned changes, and of those that are reserved in it
   * (`isReserved`): the fact `usage`.
   */
  usageOf(prefix: Row): { used: bigint; reserved: bigint } {
    const plannedUsage = this.usage.get(prefix.id) ?? 0n;
    if (this.snapshot.isNew('prefixes', prefix.id))
      return { used: plannedUsage, reserved: countReserved(blockOf(prefix)) };
    const { used, reserved } = this.snapshot.fact('usage', prefix.id);
    return { used: used + plannedUsage, reserved };
  }

  /** Adds addresses that a planned change uses. */
  addUsage(prefixId: string, addresses: bigint): void {
    const before = this.usage.get(prefixId) ?? 0n;
    this.usage.set(prefixId, before + addresses);
    this.snapshot.onUndo(() => this.usage.set(prefixId, before));
  }

  /** A mutation asks for the same neighbours several times, with one block. */
  private requireNeighbours({ vrf, tenantId }: Space, block: Block): void {
    const last = this.lastRequired;
    if (last.block === block && last.vrf === vrf && last.tenantId === tenantId) return;
    this.snapshot.require({ kind: 'neighbours', vrf, tenantId, cidr: formatBlock(block) });
    this.lastRequired = { block, vrf, tenantId };
  }

  private inVrfAround(vrf: string, block: Block): PrefixNode[] {
    return [...this.around(vrf, block, block.length)].flat();
  }

  /** The prefixes of a VRF around `block` by their networks, from `length` to the largest. */
  private *around(vrf: string, block: Block, length: number): Generator<PrefixNode[]> {
    const lengths = this.lengths.get(lengthsKey(vrf, block));
    if (!lengths) return;
    for (let each = length; each > 0; each--) {
      if (lengths[each] === 0) continue;
      const nodes = this.byNetwork.get(networkKey(vrf, blockAt(block.family, block.first, each)));
      if (nodes) yield nodes;
    }
  }

  private countLength(vrf: string, block: Block, change: 1 | -1): void {
    const key = lengthsKey(vrf, block);
    const lengths = this.lengths.get(key) ?? new Uint32Array(addressBits(block.family) + 1);
    lengths[block.length] = (lengths[block.length] ?? 0) + change;
    this.lengths.set(key, lengths);
  }

  private childrenOf(prefix: Row): PrefixNode[] {
    return [...(this.byParent.get(`${vrfKeyOf(prefix)}|${prefix.id}`)?.values() ?? [])];
  }

  private applyChange({ resource, id, after }: PlannedChange): void {
    if (resource !== 'prefixes') return;
    const previous = this.nodes.get(id);
    if (previous) this.remove(previous);
    if (after)
      this.insert({
        row: after,
        block: previous && previous.row.cidr === after.cidr ? previous.block : blockOf(after),
      });
  }

  private insert(node: PrefixNode): void {
    const { row, block } = node;
    const vrf = vrfKeyOf(row);
    this.nodes.set(row.id, node);
    this.countLength(vrf, block, 1);
    const order = lengthsKey(vrf, block);
    const ordered =
      this.byNetworkOrder.get(order) ?? new SortedEntries<PrefixNode>(({ block: each }) => each);
    this.byNetworkOrder.set(order, ordered);
    ordered.insert(node);
    if (row.tenantId === PLATFORM)
      this.shared.set(
        vrf,
        (this.shared.get(vrf) ?? new Map<string, PrefixNode>()).set(row.id, node),
      );
    const key = networkKey(vrf, block);
    const equal = this.byNetwork.get(key) ?? [];
    equal.splice(positionOf(equal, row.id), 0, node);
    this.byNetwork.set(key, equal);
    const parent = `${vrf}|${(row.parentPrefixId as string | null) ?? ''}`;
    const siblings = this.byParent.get(parent) ?? new Map<string, PrefixNode>();
    this.byParent.set(parent, siblings.set(row.id, node));
  }

  private remove(node: PrefixNode): void {
    const { row, block } = node;
    const vrf = vrfKeyOf(row);
    this.nodes.delete(row.id);
    this.countLength(vrf, block, -1);
    this.byNetworkOrder.get(lengthsKey(vrf, block))?.remove(node);
    this.shared.get(vrf)?.delete(row.id);
    const equal = this.byNetwork.get(networkKey(vrf, block)) ?? [];
    const at = positionOf(equal, row.id);
    if (equal[at]?.row.id === row.id) equal.splice(at, 1);
    this.byParent.get(`${vrf}|${(row.parentPrefixId as string | null) ?? ''}`)?.delete(row.id);
  }
}
