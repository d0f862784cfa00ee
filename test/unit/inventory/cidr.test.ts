import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  addressBits,
  blockAt,
  coveringBlocks,
  contains,
  formatBlock,
  formatHost,
  gapsIn,
  isBlock,
  isReserved,
  mergeSpans,
  overlaps,
  parseBlock,
  parseHost,
  parseInterfaceAddress,
  type Family,
  type Span,
} from '../../../domain/inventory/cidr.ts';

const family = fc.constantFrom<Family>(4, 6);
const host = family.chain((of) =>
  fc
    .bigInt({ min: 0n, max: (1n << BigInt(addressBits(of))) - 1n })
    .map((value) => ({ family: of, value })),
);

/** Spans so small that their addresses can be counted one by one. */
const small = fc
  .record({ family: fc.constant<Family>(4), first: fc.bigInt(0n, 60n), size: fc.bigInt(1n, 12n) })
  .map(({ family: of, first, size }): Span => ({ family: of, first, last: first + size - 1n }));
const members = ({ first, last }: Span): bigint[] =>
  Array.from({ length: Number(last - first) + 1 }, (_, i) => first + BigInt(i));
const all = (spans: readonly Span[]) =>
  [...new Set(spans.flatMap(members))].sort((a, b) => Number(a - b));

describe('text', () => {
  test('what is written is read back, for hosts, networks and addresses with a length', () => {
    fc.assert(
      fc.property(host, fc.integer({ min: 1, max: 128 }), ({ family: of, value }, any) => {
        const length = Math.min(any, addressBits(of));
        expect(parseHost(formatHost(of, value))).toEqual({ family: of, value });
        const block = blockAt(of, value, length);
        expect(parseBlock(formatBlock(block))).toEqual(block);
        expect(parseInterfaceAddress(`${formatHost(of, value)}/${length}`)).toEqual({
          family: of,
          value,
          length,
        });
      }),
    );
  });
  test.each([
    ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
    ['::ffff:10.0.0.1', '::ffff:a00:1'],
    ['::10.0.0.5', '::a00:5'],
    ['0:0:0:0:0:0:10.0.0.5', '::a00:5'],
    ['64:ff9b::192.0.2.33', '64:ff9b::c000:221'],
    ['1:0:0:2:0:0:0:3', '1:0:0:2::3'],
    ['::', '::'],
    ['10.0.0.255', '10.0.0.255'],
  ])('%s is %s', (text, canonical) => {
    const parsed = parseHost(text);
    expect(parsed && formatHost(parsed.family, parsed.value)).toBe(canonical);
  });
  test.each([
    '',
    '1',
    '1.2.3',
    '1.2.3.4.5',
    '01.2.3.4',
    '1.2.3.256',
    '0x1.2.3.4',
    '1.2.3.4 ',
    'fe80::1%eth0',
    ':::',
    '1::2::3',
    '12345::',
    'g::',
    '1.2.3.4/24',
    '::ffff:010.0.0.1',
    '::0x1.2.3.4',
    '::1.2.3',
    '1.2.3.4::',
  ])('%j is no host', (text) => expect(parseHost(text)).toBeUndefined());
  test.each([
    ['10.0.0.1/8', 'host_bits', '10.0.0.0/8'],
    ['0.0.0.0/0', 'zero_length', ''],
    ['10.0.0.0/33', 'cidr', ''],
    ['10.0.0.0', 'cidr', ''],
    ['2001:db8::1/64', 'host_bits', '2001:db8::/64'],
  ])('%s is refused: %s', (text, code, suggested) => {
    const parsed = parseBlock(text);
    expect(isBlock(parsed) ? parsed : [parsed.code, parsed.message.includes(suggested)]).toEqual([
      code,
      true,
    ]);
  });
});

describe('operations agree with enumerating every address', () => {
  test('two networks are equal, nested or apart', () => {
    fc.assert(
      fc.property(
        fc.nat(255),
        fc.integer({ min: 24, max: 32 }),
        fc.nat(255),
        fc.integer({ min: 24, max: 32 }),
        (a, m, b, n) => {
          const [one, other] = [blockAt(4, BigInt(a), m), blockAt(4, BigInt(b), n)];
          const [x, y] = [members(one), new Set(members(other))];
          expect(overlaps(one, other)).toBe(x.some((each) => y.has(each)));
          expect(contains(other, one)).toBe(x.every((each) => y.has(each)));
          expect(overlaps(one, other)).toBe(contains(one, other) || contains(other, one));
        },
      ),
    );
  });
  test('families never mix', () => {
    expect(overlaps(blockAt(4, 0n, 8), blockAt(6, 0n, 8))).toBe(false);
    expect(contains(blockAt(6, 0n, 1), blockAt(4, 5n, 32))).toBe(false);
  });
  test('spans merge where they touch, gaps are what is left, blocks are the fewest that make a span', () => {
    fc.assert(
      fc.property(fc.array(small, { maxLength: 8 }), small, (spans, whole) => {
        const merged = mergeSpans(spans);
        expect(all(merged)).toEqual(all(spans));
        expect(
          merged.every((span, i) => i === 0 || span.first > (merged[i - 1]?.last ?? 0n) + 1n),
        ).toBe(true);
        const taken = new Set(all(spans));
        expect(all(gapsIn(whole, merged))).toEqual(
          members(whole).filter((value) => !taken.has(value)),
        );
        const blocks = coveringBlocks(whole);
        expect([
          all(blocks),
          blocks.every(({ first, length }) => blockAt(4, first, length).first === first),
        ]).toEqual([members(whole), true]);
        // No two of them, side by side, are one network.
        expect(
          blocks.every(
            (block, i) =>
              i === 0 ||
              blocks[i - 1]?.length !== block.length ||
              blockAt(4, block.first, block.length - 1).first === block.first,
          ),
        ).toBe(true);
      }),
    );
  });
  test('thousands of addresses in an IPv6 network leave networks that are exactly the rest', () => {
    const whole = blockAt(6, 0x20010db8n << 96n, 64);
    const used = Array.from({ length: 500 }, (_, i) => {
      const value = whole.first + ((BigInt(i + 1) * 0x9e3779b97f4a7c15n) & (2n ** 64n - 1n));
      return { family: 6, first: value, last: value } as const;
    });
    const blocks = gapsIn(whole, mergeSpans(used)).flatMap(coveringBlocks);
    const rest = blocks.reduce((sum, { first, last }) => sum + last - first + 1n, 0n);
    expect(rest).toBe(2n ** 64n - 500n);
    for (const block of blocks) expect(blockAt(6, block.first, block.length)).toEqual(block);
    expect(coveringBlocks(blockAt(6, 0n, 0))).toEqual([blockAt(6, 0n, 0)]);
  });
  test('network and broadcast address are reserved in IPv4 networks shorter than /31 only', () => {
    expect([24, 30, 31, 32].map((length) => isReserved(blockAt(4, 0n, length), 0n))).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect([
      isReserved(blockAt(4, 0n, 30), 3n),
      isReserved(blockAt(4, 0n, 30), 2n),
      isReserved(blockAt(6, 0n, 64), 0n),
    ]).toEqual([true, false, false]);
  });
});
