import {
  addressBits,
  blockAt,
  contains,
  formatBlock,
  isBlock,
  parseBlock,
  parseHost,
  type Block,
  type Span,
} from './cidr.ts';
import type { Row } from './resource.ts';
import { vrfKeyOf, type PlannedChange, type PlanSnapshot } from './planSnapshot.ts';

/** A stored or planned prefix. */
export type PrefixNode = { row: Row; block: Block };

/** The network of a prefix. Stored networks are valid, so anything else is a bug. */
export function blockOf(row: Row): Block {
  const block = parseBlock(String(row.cidr));
  if (!isBlock(block)) throw new Error(`${row.id} has an invalid network`);
  return block;
}

/** The span of an IP range or of a single address. */
export function spanOf(row: Row): Span {
  const first = parseHost(String(row.startAddress ?? row.address).split('/')[0] ?? '');
  const last = parseHost(String(row.endAddress ?? row.address).split('/')[0] ?? '');
  if (!first || !last) throw new Error(`${row.id} has an invalid address`);
  return { family: first.family, first: first.value, last: last.value };
}

const networkKey = (vrf: string, block: Block): string =>
  `${vrf}|${block.family}|${block.first.toString(36)}|${block.length}`;

/** The prefixes of each VRF by containment, as far as loaded, with the planned changes. */
export class PrefixTree {
  private readonly byNetwork = new Map<string, PrefixNode[]>();
  private readonly byParent = new Map<string, Map<string, PrefixNode>>();
  private readonly nodes = new Map<string, PrefixNode>();
  /** The number of addresses that planned changes use, by the id of their prefix. */
  private readonly usage = new Map<string, bigint>();
  private readonly snapshot: PlanSnapshot;

  constructor(snapshot: PlanSnapshot) {
    this.snapshot = snapshot;
    snapshot.subscribe((change) => this.applyChange(change));
  }

  /** The prefixes whose network is `block`. */
  equalTo(vrf: string, block: Block): PrefixNode[] {
    this.snapshot.require({ kind: 'neighbours', vrf, cidr: formatBlock(block) });
    return this.byNetwork.get(networkKey(vrf, block)) ?? [];
  }

  /**
   * The smallest prefixes that strictly contain `block`, or equal it with `orEqual`. There are
   * several only when a VRF has the same network more than once.
   */
  smallestContaining(
    vrf: string,
    block: Block,
    { orEqual = false, exclude }: { orEqual?: boolean; exclude?: string } = {},
  ): PrefixNode[] {
    this.snapshot.require({ kind: 'neighbours', vrf, cidr: formatBlock(block) });
    for (let length = block.length - (orEqual ? 0 : 1); length > 0; length--) {
      const found = this.byNetwork
        .get(networkKey(vrf, blockAt(block.family, block.first, length)))
        ?.filter(({ row }) => row.id !== exclude);
      if (found && found.length > 0) return found;
    }
    return [];
  }

  /** All prefixes that contain or equal `block`, the smallest first. */
  containing(vrf: string, block: Block): PrefixNode[] {
    this.snapshot.require({ kind: 'neighbours', vrf, cidr: formatBlock(block) });
    return Array.from({ length: block.length }, (_, i) => block.length - i).flatMap(
      (length) =>
        this.byNetwork.get(networkKey(vrf, blockAt(block.family, block.first, length))) ?? [],
    );
  }

  /** The smallest prefix that contains an address. */
  parentOf(vrf: string, host: Span): PrefixNode | undefined {
    return this.smallestContaining(
      vrf,
      { ...host, length: addressBits(host.family) },
      { orEqual: true },
    )[0];
  }

  /** The outermost prefixes inside `block`: children of `parents`, its smallest containers. */
  outermostInside(vrf: string, block: Block, parents: readonly PrefixNode[]): PrefixNode[] {
    this.snapshot.require({ kind: 'neighbours', vrf, cidr: formatBlock(block) });
    const siblings = (parents.length === 0 ? [''] : parents.map(({ row }) => row.id)).flatMap(
      (id) => [...(this.byParent.get(`${vrf}|${id}`)?.values() ?? [])],
    );
    return siblings.filter(
      (node) => node.block.length > block.length && contains(block, node.block),
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
    return [...(this.byParent.get(`${vrfKeyOf(prefix)}|${prefix.id}`)?.values() ?? [])];
  }

  /** The number of used addresses in a prefix: the fact `usage` plus planned changes. */
  used(prefix: Row): bigint {
    const plannedUsage = this.usage.get(prefix.id) ?? 0n;
    return this.snapshot.isNew('prefixes', prefix.id)
      ? plannedUsage
      : this.snapshot.fact('usage', prefix.id) + plannedUsage;
  }

  /** Adds addresses that a planned change uses. */
  addUsage(prefixId: string, addresses: bigint): void {
    const before = this.usage.get(prefixId) ?? 0n;
    this.usage.set(prefixId, before + addresses);
    this.snapshot.onUndo(() => this.usage.set(prefixId, before));
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
    const key = networkKey(vrf, block);
    this.byNetwork.set(
      key,
      [...(this.byNetwork.get(key) ?? []), node].sort((a, b) => (a.row.id < b.row.id ? -1 : 1)),
    );
    const parent = `${vrf}|${(row.parentPrefixId as string | null) ?? ''}`;
    const siblings = this.byParent.get(parent) ?? new Map<string, PrefixNode>();
    this.byParent.set(parent, siblings.set(row.id, node));
  }

  private remove({ row, block }: PrefixNode): void {
    const vrf = vrfKeyOf(row);
    this.nodes.delete(row.id);
    const key = networkKey(vrf, block);
    this.byNetwork.set(
      key,
      (this.byNetwork.get(key) ?? []).filter((other) => other.row.id !== row.id),
    );
    this.byParent.get(`${vrf}|${(row.parentPrefixId as string | null) ?? ''}`)?.delete(row.id);
  }
}
