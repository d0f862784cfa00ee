import {
  bitsOf,
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
import { vrfKeyOf, type Change, type World } from './planSnapshot.ts';

/** A prefix that is there or planned. */
export type Placed = { row: Row; block: Block };

/** A network out of a row, which has been checked when it was made. */
export function blockOf(row: Row): Block {
  const block = parseBlock(String(row.cidr));
  if (!isBlock(block)) throw new Error(`${row.id} is stored with a network that is none`);
  return block;
}

/** The addresses of a range or of an address. */
export function spanOf(row: Row): Span {
  const first = parseHost(String(row.startAddress ?? row.address).split('/')[0] ?? '');
  const last = parseHost(String(row.endAddress ?? row.address).split('/')[0] ?? '');
  if (!first || !last) throw new Error(`${row.id} is stored with an address that is none`);
  return { family: first.family, first: first.value, last: last.value };
}

const keyOf = (vrf: string, block: Block): string =>
  `${vrf}|${block.family}|${block.first.toString(36)}|${block.length}`;

/** The tree of networks of each VRF, as far as it is loaded, with planned changes. */
export class Space {
  private byNetwork = new Map<string, Placed[]>();
  private byParent = new Map<string, Map<string, Placed>>();
  private placed = new Map<string, Placed>();
  /** Addresses that planned changes took or freed, by the prefix that they are in. */
  private readonly usage = new Map<string, bigint>();
  private readonly world: World;

  constructor(world: World) {
    this.world = world;
    world.listen({ reset: () => this.reset(), changed: (change) => this.changed(change) });
  }

  /** Networks equal to `block`. */
  equal(vrf: string, block: Block): Placed[] {
    this.world.require({ kind: 'around', vrf, cidr: formatBlock(block) });
    return this.byNetwork.get(keyOf(vrf, block)) ?? [];
  }

  /** The smallest networks that contain all of `span` and more, or exactly it where `orEqual`; several only when it is there twice. */
  closest(
    vrf: string,
    block: Block,
    { orEqual = false, but }: { orEqual?: boolean; but?: string } = {},
  ): Placed[] {
    this.world.require({ kind: 'around', vrf, cidr: formatBlock(block) });
    for (let length = block.length - (orEqual ? 0 : 1); length > 0; length--) {
      const found = this.byNetwork
        .get(keyOf(vrf, blockAt(block.family, block.first, length)))
        ?.filter(({ row }) => row.id !== but);
      if (found && found.length > 0) return found;
    }
    return [];
  }

  /** The closest network around one address. */
  around(vrf: string, host: Span): Placed | undefined {
    return this.closest(vrf, { ...host, length: bitsOf(host.family) }, { orEqual: true })[0];
  }

  /** The outermost networks inside `block`: those below `parents`, the closest around it. */
  within(vrf: string, block: Block, parents: readonly Placed[]): Placed[] {
    this.world.require({ kind: 'around', vrf, cidr: formatBlock(block) });
    const siblings = (parents.length === 0 ? [''] : parents.map(({ row }) => row.id)).flatMap(
      (id) => [...(this.byParent.get(`${vrf}|${id}`)?.values() ?? [])],
    );
    return siblings.filter(
      (placed) => placed.block.length > block.length && contains(block, placed.block),
    );
  }

  /** The prefixes right below one. */
  children(prefix: Row): Placed[] {
    this.world.require({
      kind: 'rows',
      resource: 'prefixes',
      fields: ['parentPrefixId'],
      values: [prefix.id],
    });
    return [...(this.byParent.get(`${vrfKeyOf(prefix)}|${prefix.id}`)?.values() ?? [])];
  }

  /** Addresses of a prefix that its children and its addresses take; see the fact `usage`. */
  used(prefix: Row): bigint {
    const planned = this.usage.get(prefix.id) ?? 0n;
    return this.world.isNew('prefixes', prefix.id)
      ? planned
      : this.world.fact('usage', prefix.id) + planned;
  }

  /** Counts what a planned change takes of a prefix. */
  take(prefixId: string, addresses: bigint): void {
    this.usage.set(prefixId, (this.usage.get(prefixId) ?? 0n) + addresses);
  }

  private reset(): void {
    this.byNetwork = new Map();
    this.byParent = new Map();
    this.placed = new Map();
    this.usage.clear();
  }

  private changed({ resource, id, after }: Change): void {
    if (resource !== 'prefixes') return;
    const known = this.placed.get(id);
    if (known) this.forget(known);
    if (after)
      this.add({
        row: after,
        block: known && known.row.cidr === after.cidr ? known.block : blockOf(after),
      });
  }

  private add(placed: Placed): void {
    const { row, block } = placed;
    const vrf = vrfKeyOf(row);
    this.placed.set(row.id, placed);
    const key = keyOf(vrf, block);
    this.byNetwork.set(
      key,
      [...(this.byNetwork.get(key) ?? []), placed].sort((a, b) => (a.row.id < b.row.id ? -1 : 1)),
    );
    const parent = `${vrf}|${(row.parentPrefixId as string | null) ?? ''}`;
    const siblings = this.byParent.get(parent) ?? new Map<string, Placed>();
    this.byParent.set(parent, siblings.set(row.id, placed));
  }

  private forget({ row, block }: Placed): void {
    const vrf = vrfKeyOf(row);
    this.placed.delete(row.id);
    const key = keyOf(vrf, block);
    this.byNetwork.set(
      key,
      (this.byNetwork.get(key) ?? []).filter((other) => other.row.id !== row.id),
    );
    this.byParent.get(`${vrf}|${(row.parentPrefixId as string | null) ?? ''}`)?.delete(row.id);
  }
}
