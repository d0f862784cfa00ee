import ipaddr from 'ipaddr.js';

export type Family = 4 | 6;

/** Addresses from `first` to `last`, both included, of one family. Nothing here enumerates them. */
export type Span = { family: Family; first: bigint; last: bigint };

/** A network: a span whose size is a power of two and which is aligned to it. */
export type Block = Span & { length: number };

/** Why a text is not what it should be. */
export type Unparsable = { code: string; message: string };

export const bitsOf = (family: Family): number => (family === 4 ? 32 : 128);

/** Four decimal numbers without leading zeros: other forms are read differently by different programs. */
const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;
const LENGTH = /^(?:0|[1-9]\d{0,2})$/;

/** An address without a length; undefined for anything else, a zone (RFC 4007) too. */
export function parseHost(text: string): { family: Family; value: bigint } | undefined {
  if (IPV4.test(text))
    return {
      family: 4,
      value: BigInt(text.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0)),
    };
  if (!text.includes(':') || text.includes('%') || text.length > 45 || !ipaddr.IPv6.isValid(text))
    return undefined;
  return { family: 6, value: valueOf(ipaddr.IPv6.parse(text).toByteArray()) };
}

const valueOf = (bytes: readonly number[]): bigint =>
  BigInt(`0x${bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('')}`);

/** An address in its canonical form (RFC 5952). */
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

/** How many addresses a network of this length has. */
export const sizeOfLength = (family: Family, length: number): bigint =>
  1n << BigInt(bitsOf(family) - length);

/** The network of this length that `value` lies in. */
export function blockAt(family: Family, value: bigint, length: number): Block {
  const size = sizeOfLength(family, length);
  const first = (value / size) * size;
  return { family, first, last: first + size - 1n, length };
}

/** An address and a length, `10.0.0.5/24`. */
export function parseInterfaceAddress(
  text: string,
): { family: Family; value: bigint; length: number } | undefined {
  const slash = text.indexOf('/');
  if (slash < 0) return undefined;
  const host = parseHost(text.slice(0, slash));
  const digits = text.slice(slash + 1);
  if (!host || !LENGTH.test(digits) || Number(digits) > bitsOf(host.family)) return undefined;
  return { ...host, length: Number(digits) };
}

export const formatBlock = ({ family, first, length }: Block): string =>
  `${formatHost(family, first)}/${length}`;

/** A network as PostgreSQL or a caller writes it; host bits are an error that names the network meant. */
export function parseBlock(text: string): Block | Unparsable {
  const parsed = parseInterfaceAddress(text);
  if (!parsed)
    return { code: 'cidr', message: 'is not a network such as 10.0.0.0/8 or 2001:db8::/32' };
  if (parsed.length === 0)
    return { code: 'zero_length', message: 'must not be the whole address space (/0)' };
  const block = blockAt(parsed.family, parsed.value, parsed.length);
  if (block.first === parsed.value) return block;
  return {
    code: 'host_bits',
    message: `has bits set behind its length; suggested: ${formatBlock(block)}`,
  };
}

export const isBlock = (parsed: Block | Unparsable): parsed is Block => 'first' in parsed;

/** True when every address of `inner` is in `outer`. */
export const contains = (outer: Span, inner: Span): boolean =>
  outer.family === inner.family && outer.first <= inner.first && inner.last <= outer.last;

export const overlaps = (one: Span, other: Span): boolean =>
  one.family === other.family && one.first <= other.last && other.first <= one.last;

export const sameSpan = (one: Span, other: Span): boolean =>
  one.family === other.family && one.first === other.first && one.last === other.last;

/** The network and the broadcast address of an IPv4 network shorter than /31 are no hosts (RFC 3021 frees /31). */
export const isReserved = (block: Block, value: bigint): boolean =>
  block.family === 4 && block.length < 31 && (value === block.first || value === block.last);

/** A span as a list of the fewest networks. */
export function blocksOf({ family, first, last }: Span): Block[] {
  const blocks: Block[] = [];
  for (let at = first; at <= last;) {
    let length = bitsOf(family);
    while (length > 0) {
      const wider = blockAt(family, at, length - 1);
      if (wider.first !== at || wider.last > last) break;
      length--;
    }
    const block = blockAt(family, at, length);
    blocks.push(block);
    at = block.last + 1n;
  }
  return blocks;
}

/** Spans merged where they touch or overlap, in order; all of one family. */
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

/** What of `whole` none of `taken` covers; `taken` as `mergeSpans` gives it. */
export function gapsIn(whole: Span, taken: readonly Span[]): Span[] {
  const gaps: Span[] = [];
  let at = whole.first;
  for (const span of taken) {
    if (span.first > whole.last) break;
    if (span.first > at) gaps.push({ family: whole.family, first: at, last: span.first - 1n });
    if (span.last >= at) at = span.last + 1n;
  }
  if (at <= whole.last) gaps.push({ family: whole.family, first: at, last: whole.last });
  return gaps;
}
