import ipaddr from 'ipaddr.js';
import {
  blockAt,
  contains,
  formatBlock,
  parseInterfaceAddress,
  type Block,
} from '../domain/inventory/cidr.ts';

export type ParsedAddress = ipaddr.IPv4 | ipaddr.IPv6;

/**
 * Parses an address without its zone; undefined for other text. An IPv4-mapped one becomes IPv4:
 * ::ffff:127.0.0.1 is 127.0.0.1.
 */
export function parseAddress(text: string): ParsedAddress | undefined {
  const address = text.replace(/%.*$/, '');
  return ipaddr.isValid(address) ? ipaddr.process(address) : undefined;
}

/** The host of a URL or a header as an address is written: IPv6 without brackets. */
export const withoutBrackets = (host: string): string => host.replace(/^\[|\]$/g, '');

/** Returns the network that rate limits count as one client: an IPv4 address, or an IPv6 /64. */
export function networkOf(address: string | null): string {
  const parsed = parseAddress(address ?? '');
  if (!parsed) return 'unknown';
  return parsed.kind() === 'ipv4'
    ? parsed.toString()
    : `${parsed.toNormalizedString().split(':').slice(0, 4).join(':')}::/64`;
}

/** The first 96 bits of an IPv4 address that is written as IPv6. */
const MAPPED = 0xffffn;

/**
 * Reads a CIDR of a setting: its canonical form, or why it is refused. ipaddr.js would read `10.20/16` as
 * 10.0.0.0/16 and `010.0.0.0/8` as 8.0.0.0/8, which is another network than was meant.
 */
export function readNetwork(text: string): { network: string } | { problem: string } {
  const parsed = parseInterfaceAddress(text);
  if (!parsed) return { problem: 'is not a CIDR such as 10.20.0.0/16 or 2001:db8::/32' };
  const { family, value, length } = parsed;
  if (family === 6 && length >= 96 && value >> 32n === MAPPED) {
    // Clients and destinations are known by their IPv4 address: none would be inside.
    const suggested = formatBlock(blockAt(4, value & 0xffff_ffffn, length - 96));
    return { problem: `is an IPv4 network in IPv6 form; suggested: ${suggested}` };
  }
  const block = blockAt(family, value, length);
  return block.first === value
    ? { network: formatBlock(block) }
    : { problem: `has host bits set; suggested: ${formatBlock(block)}` };
}

/**
 * The network of a stored CIDR. Earlier versions stored what they read leniently: host bits do not matter,
 * and no address is in a network in any other form, whose meaning is uncertain.
 */
function storedBlock(cidr: string): Block | undefined {
  const parsed = parseInterfaceAddress(cidr);
  return parsed && blockAt(parsed.family, parsed.value, parsed.length);
}

/** True for an address in one of these stored CIDRs. */
export function isInNetworks(address: string | null, cidrs: readonly string[]): boolean {
  const parsed = parseAddress(address ?? '');
  if (!parsed) return false;
  const inner = `${parsed.toString()}/${parsed.kind() === 'ipv4' ? 32 : 128}`;
  return cidrs.some((cidr) => isWithinNetwork(cidr, inner));
}

/** True when a stored CIDR is inside another one. */
export function isWithinNetwork(outer: string, inner: string): boolean {
  const [outerBlock, block] = [storedBlock(outer), storedBlock(inner)];
  return outerBlock !== undefined && block !== undefined && contains(outerBlock, block);
}
