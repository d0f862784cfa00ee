import {
  addressBits,
  blockAt,
  formatHost,
  parseHost,
  parseInterfaceAddress,
  sizeOfLength,
  type Block,
} from '../../../../domain/inventory/cidr.ts';
import { formatCount } from '../../../parts/format.ts';

/**
 * The network of a text: an address is one by itself, and host bits are cleared. Undefined for anything
 * else, and for the whole address space.
 */
export function networkOf(text: string): Block | undefined {
  if (!text.includes('/')) {
    const host = parseHost(text);
    return host && blockAt(host.family, host.value, addressBits(host.family));
  }
  const parsed = parseInterfaceAddress(text);
  if (!parsed || parsed.length === 0) return undefined;
  return blockAt(parsed.family, parsed.value, parsed.length);
}

/** The first and the last address: `10.0.0.0 – 10.0.0.255`. */
export const rangeText = ({ family, first, last }: Block): string =>
  `${formatHost(family, first)} – ${formatHost(family, last)}`;

/** Larger numbers of addresses are shown as powers of two. */
const MOST_DIGITS_LENGTH = 32;

/** How many addresses a network has: `256`, `2^64`. */
export function countOf({ family, length }: Block): string {
  const bits = addressBits(family) - length;
  if (bits > MOST_DIGITS_LENGTH) return `2^${bits}`;
  return formatCount(Number(sizeOfLength(family, length)));
}

/** The same with its noun: `256 addresses`. */
export function sizeText(block: Block): string {
  const count = countOf(block);
  return count === '1' ? '1 address' : `${count} addresses`;
}

/** Compares networks by their first address; of two that start there, the larger comes first. */
export function byNetwork(one: Block, other: Block): number {
  if (one.family !== other.family) return one.family - other.family;
  if (one.first !== other.first) return one.first < other.first ? -1 : 1;
  return one.length - other.length;
}
