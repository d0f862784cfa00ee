import ipaddr from 'ipaddr.js';

export type Family = 4 | 6;

/** The addresses from `first` to `last`, both included, of one family. */
export type Span = { family: Family; first: bigint; last: bigint };

/** A network: a span whose size is a power of two and which starts at a multiple of it. */
export type Block = Span & { length: number };

/** Why a text cannot be parsed. `code` and `message` go into a field error. */
export type ParseError = { code: string; message: string };

export const addressBits = (family: Family): number => (family === 4 ? 32 : 128);

/** Four decimal numbers without leading zeros. Programs disagree about all other forms. */
const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;
const LENGTH = /^(?:0|[1-9]\d{0,2})$/;

/** Parses an address without a length. Undefined for anything else, also with a zone (RFC 4007). */
export function parseHost(text: string): { family: Family; value: bigint } | undefined {
  if (IPV4.test(text))
    return {
      family: 4,
      value: BigInt(text.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0)),
    };
  if (!text.includes(':') || text.includes('%') || text.length > 45) return undefined;
  const hex = withoutDots(text);
  if (hex === undefined) return undefined;
  try {
    // Asking first whether it is valid would parse it twice, and maps and imports have thousands.
    return { family: 6, value: valueOf(ipaddr.IPv6.parse(hex).parts) };
  } catch {
    return undefined;
  }
}

/**
 * An IPv6 address without an IPv4 suffix. ipaddr.js reads `::10.0.0.5` as `::ffff:10.0.0.5`, which is
 * another address (RFC 4291, 2.5.5), and other forms of numbers in a suffix. Undefined for these forms.
 */
function withoutDots(text: string): string | undefined {
  if (!text.includes('.')) return text;
  const start = text.lastIndexOf(':') + 1;
  const suffix = text.slice(start);
  if (!IPV4.test(suffix)) return undefined;
  const [a = 0, b = 0, c = 0, d = 0] = suffix.split('.').map(Number);
  return `${text.slice(0, start)}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
}

/** The number that parts of 16 bits make. */
const valueOf = (parts: readonly number[]): bigint => {
  let value = 0n;
  for (let at = 0; at < parts.length; at += 2)
    value = (value << 32n) | BigInt((parts[at] ?? 0) * 65_536 + (parts[at + 1] ?? 0));
  return value;
};

/** Formats an address in its canonical form (RFC 5952 for IPv6). */
export function formatHost(family: Family, value: bigint): string {
  if (family === 4) {
    const number = Number(value);
    return [number >>> 24, (number >>> 16) & 255, (number >>> 8) & 255, number & 255].join('.');
  }
  const digits = value.toString(16).padStart(32, '0');
  return new ipaddr.IPv6(
    (digits.match(/../g) ?? []).map((byte) => Number.parseInt(byte, 16)),
  ).toRFC5952String();
}

/** 1, 2, 4 … 2^128: maps and imports ask for thousands of sizes. */
const POWERS = Array.from({ length: 129 }, (_, exponent) => 1n << BigInt(exponent));

/** The number of addresses in a network of this length. */
export const sizeOfLength = (family: Family, length: number): bigint =>
  POWERS[addressBits(family) - length] ?? 0n;

/** The network of this length that contains the address `value`. */
export function blockAt(family: Family, value: bigint, length: number): Block {
  const size = sizeOfLength(family, length);
  const first = value - (value & (size - 1n));
  return { family, first, last: first + size - 1n, length };
}

/** Parses an address with a length, such as `10.0.0.5/24`. Undefined for anything else. */
export function parseInterfaceAddress(
  text: string,
): { family: Family; value: bigint; length: number } | undefined {
  const slash = text.indexOf('/');
  if (slash < 0) return undefined;
  const host = parseHost(text.slice(0, slash));
  const digits = text.slice(slash + 1);
  if (!host || !LENGTH.test(digits) || Number(digits) > addressBits(host.family)) return undefined;
  return { ...host, length: Number(digits) };
}

export const formatBlock = ({ family, first, length }: Block): string =>
  `${formatHost(family, first)}/${length}`;

/**
 * Parses a network in CIDR notation (RFC 4632). Error codes: `cidr`, `zero_length` and `host_bits`,
 * which suggests the network without the host bits.
 */
export function parseBlock(text: string): Block | ParseError {
  const parsed = parseInterfaceAddress(text);
  if (!parsed)
    return { code: 'cidr', message: 'is not a network such as 10.0.0.0/8 or 2001:db8::/32' };
  if (parsed.length === 0)
    return { code: 'zero_length', message: 'must not be the whole address space (/0)' };
  const block = blockAt(parsed.family, parsed.value, parsed.length);
  if (block.first === parsed.value) return block;
  return {
    code: 'host_bits',
    message: `has host bits set; suggested: ${formatBlock(block)}`,
  };
}

export const isBlock = (parsed: Block | ParseError): parsed is Block => 'first' in parsed;

/** The smallest network that contains a span. */
export function enclosingBlock({ family, first, last }: Span): Block {
  const differing = (first ^ last).toString(2).replace(/^0$/, '').length;
  return blockAt(family, first, addressBits(family) - differing);
}

/** True when `outer` contains every address of `inner`. */
export const contains = (outer: Span, inner: Span): boolean =>
  outer.family === inner.family && outer.first <= inner.first && inner.last <= outer.last;

export const overlaps = (one: Span, other: Span): boolean =>
  one.family === other.family && one.first <= other.last && other.first <= one.last;

export const sameSpan = (one: Span, other: Span): boolean =>
  one.family === other.family && one.first === other.first && one.last === other.last;

/**
 * True for the network and the broadcast address of an IPv4 network shorter than /31. RFC 3021
 * allows hosts at both addresses of a /31.
 */
export const isReserved = (block: Block, value: bigint): boolean =>
  block.family === 4 && block.length < 31 && (value === block.first || value === block.last);

/** The number of reserved addresses of a network. */
export const countReserved = (block: Block): bigint => (isReserved(block, block.first) ? 2n : 0n);

/** The number of bits of a positive number. */
function bitsOf(value: bigint): number {
  const digits = value.toString(16);
  return 4 * digits.length - (Math.clz32(Number.parseInt(digits.charAt(0), 16)) - 28);
}

/**
 * The fewest networks that together are a span, in order, one at a time: a span of IPv6 may have a
 * hundred of them. Each is as large as the zeros at the end of its first address, and what is left of
 * the span, allow.
 */
export function* eachCoveringBlock({ family, first, last }: Span): Generator<Block> {
  for (let next = first; next <= last;) {
    const fitting = bitsOf(last - next + 1n) - 1;
    const aligned = next === 0n ? addressBits(family) : bitsOf(next & -next) - 1;
    const length = addressBits(family) - Math.min(fitting, aligned);
    const block = { family, first: next, last: next + sizeOfLength(family, length) - 1n, length };
    yield block;
    next = block.last + 1n;
  }
}

/** The fewest networks that together are a span, in order. */
export const coveringBlocks = (span: Span): Block[] => [...eachCoveringBlock(span)];

/** Merges spans of one family that touch or overlap. Returns them in order. */
export function mergeSpans(spans: readonly Span[]): Span[] {
  const merged: Span[] = [];
  for (const span of [...spans].sort((a, b) =>
    a.first < b.first ? -1 : a.first > b.first ? 1 : 0,
  )) {
    const previous = merged.at(-1);
    if (previous && span.first <= previous.last + 1n)
      previous.last = span.last > previous.last ? span.last : previous.last;
    else merged.push({ ...span });
  }
  return merged;
}

/** The parts of `whole` outside `occupied`, which must be merged and in order (`mergeSpans`). */
export function gapsIn(whole: Span, occupied: readonly Span[]): Span[] {
  const gaps: Span[] = [];
  let next = whole.first;
  for (const span of occupied) {
    if (span.first > whole.last) break;
    if (span.first > next) gaps.push({ family: whole.family, first: next, last: span.first - 1n });
    if (span.last >= next) next = span.last + 1n;
  }
  if (next <= whole.last) gaps.push({ family: whole.family, first: next, last: whole.last });
  return gaps;
}
