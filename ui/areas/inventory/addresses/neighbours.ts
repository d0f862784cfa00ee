import {
  addressBits,
  blockAt,
  contains,
  formatHost,
  isReserved,
  parseHost,
  sizeOfLength,
  type Block,
} from '../../../../domain/inventory/cidr.ts';
import { networkOf } from '../space/networks.ts';

/** What is in a prefix, as the API has it. */
export type Contents = {
  addresses: readonly {
    address: string;
    id: string | null;
    status: string | null;
    dnsName: string | null;
  }[];
  ranges: readonly { start: string; end: string; id: string | null }[];
};

/** An address beside another one, and what takes it. */
export type Neighbour = { address: string } & (
  | { kind: 'address'; id: string | null; status: string | null; name: string }
  | { kind: 'range'; id: string | null }
  | { kind: 'prefix'; id: string | null; cidr: string }
  /** No host can have the first and the last address of an IPv4 network. */
  | { kind: 'network' | 'broadcast' | 'free' }
);

/** 32 addresses: what fits on a screen. */
const SHOWN_BITS = 5;

/** The part of a prefix around an address whose addresses are shown. */
export const neighbourhoodOf = (prefix: Block, value: bigint): Block =>
  blockAt(prefix.family, value, Math.max(prefix.length, addressBits(prefix.family) - SHOWN_BITS));

const valueOf = (text: string): bigint | undefined => parseHost(text)?.value;

/** What takes each address of a part of a prefix; `inside` has the prefixes in that prefix. */
export function neighboursIn(
  prefix: Block,
  part: Block,
  { addresses, ranges }: Contents,
  inside: readonly { cidr: string; id: string | null }[],
): Neighbour[] {
  const recorded = new Map(addresses.map((each) => [valueOf(each.address), each]));
  const children = inside.flatMap(({ cidr, id }) => {
    const block = networkOf(cidr);
    // What has the same network is the prefix itself, of another tenant.
    return block && contains(prefix, block) && block.length > prefix.length
      ? [{ cidr, id, block }]
      : [];
  });
  const takenBy = (value: bigint): Neighbour => {
    const address = formatHost(part.family, value);
    const own = recorded.get(value);
    if (own)
      return { address, kind: 'address', id: own.id, status: own.status, name: own.dnsName ?? '' };
    const child = children.find(({ block }) => block.first <= value && value <= block.last);
    if (child) return { address, kind: 'prefix', id: child.id, cidr: child.cidr };
    const range = ranges.find(({ start, end }) => {
      const [first, last] = [valueOf(start), valueOf(end)];
      return first !== undefined && last !== undefined && first <= value && value <= last;
    });
    if (range) return { address, kind: 'range', id: range.id };
    if (!isReserved(prefix, value)) return { address, kind: 'free' };
    return { address, kind: value === prefix.first ? 'network' : 'broadcast' };
  };
  return Array.from({ length: Number(part.last - part.first) + 1 }, (_, index) =>
    takenBy(part.first + BigInt(index)),
  );
}

/** The lowest free address of a prefix that an allocation would take, in its free networks. */
export function nextFreeIn(prefix: Block, free: readonly string[]): string | undefined {
  const { family, length } = prefix;
  const isShort = length < addressBits(family) - 1;
  const [least, most] = [
    isShort ? prefix.first + 1n : prefix.first,
    isShort && family === 4 ? prefix.last - 1n : prefix.last,
  ];
  for (const cidr of free) {
    const block = networkOf(cidr);
    if (!block) continue;
    const value = block.first < least ? least : block.first;
    if (value <= block.last && value <= most) return formatHost(family, value);
  }
  return undefined;
}

/** How an address of a prefix is configured: with its length. */
export const inPrefix = (address: string, { length }: Block): string => `${address}/${length}`;

/** The end of an address, by which it differs from its neighbours: `.17`, `:2a`. */
export function endOf(address: string): string {
  const at = Math.max(address.lastIndexOf('.'), address.lastIndexOf(':'));
  return address.slice(at);
}

/** True if a network is one address by itself. */
export const isSingle = ({ family, length }: Block): boolean => sizeOfLength(family, length) === 1n;
