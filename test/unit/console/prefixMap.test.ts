import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  addressBits,
  blockAt,
  contains,
  formatBlock,
  overlaps,
  type Block,
  type Family,
} from '../../../domain/inventory/cidr.ts';
import { addressAt, rectOf, type Rect } from '../../../ui/areas/inventory/space/mapLayout.ts';
import {
  createMapModel,
  createMarks,
  type MapItem,
} from '../../../ui/areas/inventory/space/mapModel.ts';
import { itemText, stateOf } from '../../../ui/areas/inventory/space/itemState.ts';
import {
  onScreen,
  shownNetworks,
  viewOf,
  WHOLE_MAP,
  zoomed,
} from '../../../ui/areas/inventory/space/mapView.ts';
import { networkOf, sizeText } from '../../../ui/areas/inventory/space/networks.ts';

const WHOLE: Readonly<Record<Family, Block>> = {
  4: blockAt(4, 10n << 24n, 8),
  6: blockAt(6, 0x20010db8n << 96n, 32),
};
/** Beyond that a map is no longer exact. */
const MOST_BITS = 48;

/** Networks in the whole one of their family. */
const inside = (family: Family) => {
  const whole = WHOLE[family];
  const most = Math.min(addressBits(family), whole.length + MOST_BITS);
  return fc
    .record({
      offset: fc.bigInt(0n, whole.last - whole.first),
      length: fc.integer({ min: whole.length + 1, max: most }),
    })
    .map(({ offset, length }) => blockAt(family, whole.first + offset, length));
};
const several = fc
  .constantFrom<Family>(4, 6)
  .chain((family) => fc.array(inside(family), { minLength: 1, maxLength: 30 }));

const modelOf = (blocks: readonly Block[], family: Family) =>
  createMapModel(
    { cidr: formatBlock(WHOLE[family]), id: 'root', status: 'container' },
    WHOLE[family],
    blocks.map((block, at) => ({ cidr: formatBlock(block), id: `p${at}`, status: 'active' })),
    [WHOLE[family]],
  );

const isIn = (inner: Rect, outer: Rect): boolean =>
  inner.x >= outer.x &&
  inner.y >= outer.y &&
  inner.x + inner.width <= outer.x + outer.width &&
  inner.y + inner.height <= outer.y + outer.height;

describe('the map of a prefix', () => {
  test('has what was read twice once, also of several with the same network', () => {
    const read = [
      { cidr: '10.1.0.0/16', id: 'b', status: 'active' },
      { cidr: '10.1.0.0/16', id: 'a', status: 'active' },
      { cidr: '10.1.2.0/24', id: null, status: null },
    ];
    const root = { cidr: '10.0.0.0/8', id: 'root', status: 'container' };
    const { nodes } = createMapModel(root, WHOLE[4], [...read, ...read], []);
    expect(nodes.map(({ prefix }) => prefix.id)).toEqual(['root', 'a', 'b', null]);
  });

  test('has networks in each other where they contain each other, and else beside each other', () => {
    fc.assert(
      fc.property(several, (blocks) => {
        const whole = WHOLE[blocks[0]?.family ?? 4];
        for (const one of blocks)
          for (const other of blocks) {
            const [a, b] = [rectOf(whole, one), rectOf(whole, other)];
            const isDisjoint =
              a.x + a.width <= b.x ||
              b.x + b.width <= a.x ||
              a.y + a.height <= b.y ||
              b.y + b.height <= a.y;
            expect([contains(one, other), !overlaps(one, other)]).toEqual([isIn(b, a), isDisjoint]);
          }
      }),
    );
  });

  test('finds the address where it is drawn', () => {
    fc.assert(
      fc.property(several, (blocks) => {
        for (const block of blocks) {
          const whole = WHOLE[block.family];
          const { x, y, width, height } = rectOf(whole, block);
          const found = addressAt(whole, x + width / 2, y + height / 2);
          expect(blockAt(block.family, found, block.length)).toEqual(block);
        }
      }),
    );
  });

  test('has every address once: the parts of a prefix follow each other without a gap', () => {
    fc.assert(
      fc.property(several, (blocks) => {
        const family = blocks[0]?.family ?? 4;
        const model = modelOf(blocks, family);
        for (const node of model.nodes) {
          // Of two with the same network one is in the other, and the inner one is found.
          const isDouble = node.children.some(({ block }) => block.length === node.block.length);
          if (node.children.length === 0 || isDouble) continue;
          let next = node.block.first;
          const parent = model.find(node.block) as MapItem;
          for (let part = model.inside(parent); part; part = model.next(part)) {
            expect(part.block.first).toBe(next);
            // What is free has no prefix in it.
            if (part.node === null)
              expect(
                blocks.some(
                  (block) =>
                    overlaps(block, part.block) &&
                    contains(node.block, block) &&
                    !contains(block, node.block),
                ),
              ).toBe(false);
            next = part.block.last + 1n;
          }
          expect(next).toBe(node.block.last + 1n);
        }
      }),
    );
  });

  test('leads back from each part to the one before it, and out of it', () => {
    const blocks = ['10.0.0.0/16', '10.0.4.0/24', '10.0.5.0/24'].map((text) => networkOf(text));
    const model = modelOf(
      blocks.flatMap((block) => block ?? []),
      4,
    );
    const second = model.find(networkOf('10.0.5.0/24') as Block) as MapItem;
    expect(model.previous(second)?.cidr).toBe('10.0.4.0/24');
    expect(model.next(second)?.cidr).toBe('10.0.6.0/23');
    expect(model.around(second)?.cidr).toBe('10.0.0.0/16');
    expect(model.pathTo(second).map(({ prefix }) => prefix.cidr)).toEqual([
      '10.0.0.0/8',
      '10.0.0.0/16',
    ]);
    const free = model.itemAt(10n << 24n, () => true);
    expect([free.cidr, free.node]).toEqual(['10.0.0.0/22', null]);
    // What is too small to be hit is not meant.
    expect(model.itemAt(10n << 24n, ({ width }) => width > 0.5).cidr).toBe('10.0.0.0/8');
    expect(model.find(networkOf('192.0.2.0/24') as Block)).toBeUndefined();
  });

  test('keeps the point under the pointer when it is magnified, to a single address', () => {
    const size = { width: 600, height: 300 };
    for (const family of [4, 6] as const) {
      const whole = WHOLE[family];
      let view = viewOf(WHOLE_MAP, size, whole);
      const at = { x: 201, y: 77 };
      const before = addressAt(whole, view.x + at.x / view.scale, view.y + at.y / view.scale);
      for (let n = 0; n < 200; n += 1) view = zoomed(view, 1.6, at, [size, whole]);
      const after = addressAt(whole, view.x + at.x / view.scale, view.y + at.y / view.scale);
      const shared = BigInt(Math.max(0, addressBits(family) - whole.length - MOST_BITS));
      expect(after >> shared).toBe(before >> shared);
      const cell = rectOf(
        whole,
        blockAt(family, after, Math.min(addressBits(family), whole.length + MOST_BITS)),
      );
      expect(onScreen(view, cell).width).toBeGreaterThan(100);
      for (let n = 0; n < 200; n += 1) view = zoomed(view, 1 / 1.6, at, [size, whole]);
      expect(view).toEqual(viewOf(WHOLE_MAP, size, whole));
    }
  });

  test('asks for four networks at most, which cover what is shown', () => {
    const size = { width: 600, height: 300 };
    fc.assert(
      fc.property(inside(4), fc.constantFrom(1, 1.3, 3.7), (block, factor) => {
        const whole = WHOLE[4];
        const around = zoomed(
          viewOf(rectOf(whole, block), size, whole),
          1 / factor,
          { x: 99, y: 200 },
          [size, whole],
        );
        const networks = shownNetworks(whole, around, size).map((text) => networkOf(text) as Block);
        expect(networks.length).toBeLessThanOrEqual(4);
        for (const [x, y] of [
          [0, 0],
          [599, 299],
          [300, 1],
          [1, 299],
        ] as const) {
          const address = addressAt(
            whole,
            Math.min(Math.max(around.x + x / around.scale, 0), 1.999999),
            Math.min(Math.max(around.y + y / around.scale, 0), 0.999999),
          );
          expect(networks.some(({ first, last }) => first <= address && address <= last)).toBe(
            true,
          );
        }
      }),
    );
  });
});

test.each([
  ['10.1.2.3', '10.1.2.3/32'],
  ['10.1.2.3/8', '10.0.0.0/8'],
  ['2001:db8::1', '2001:db8::1/128'],
  ['2001:DB8::1/64', '2001:db8::/64'],
  ['0.0.0.0/0', undefined],
  ['10.1.2', undefined],
  ['', undefined],
])('the network of %s is %s', (text, expected) => {
  const block = networkOf(text);
  expect(block && formatBlock(block)).toBe(expected);
});

test.each([
  ['10.0.0.0/8', '16,777,216 addresses'],
  ['10.0.0.1/32', '1 address'],
  ['2001:db8::/64', '2^64 addresses'],
])('%s has %s', (text, expected) => {
  expect(sizeText(networkOf(text) as Block)).toBe(expected);
});

test('addresses and ranges are parts of the map, in the prefix that has them', () => {
  const whole = blockAt(4, 10n << 24n, 8);
  const inner = { cidr: '10.1.0.0/16', id: 'pfx_1', status: 'active' };
  const root = { cidr: '10.0.0.0/8', id: 'pfx_0', status: null };
  const model = createMapModel(root, whole, [inner], [whole]);
  const contents = {
    addresses: [
      { address: '10.1.0.9', status: 'active' },
      { address: '192.0.2.1', status: 'active' },
    ],
    // It begins before the map, and ends in it: two networks.
    ranges: [{ start: '9.255.255.255', end: '10.0.0.2', status: null }],
  };
  const marks = createMarks(model, contents, [whole]);
  expect(marks.all.map(({ kind }) => kind)).toEqual(['range', 'range', 'address']);
  const host = networkOf('10.1.0.9');
  const network = networkOf(inner.cidr);
  expect(marks.at(host?.first ?? 0n)).toEqual({
    ...{ kind: 'address', status: 'active' },
    rect: host && rectOf(whole, host),
    holder: network && rectOf(whole, network),
  });
  expect(marks.at(1n)).toBeUndefined();
});

describe('a part of the map in words', () => {
  const block = (text: string): Block => networkOf(text) as Block;
  const root = { cidr: '10.0.0.0/8', id: 'pfx_0', status: 'container' };
  const prefixes = [
    { cidr: '10.1.0.0/16', id: 'pfx_1', status: 'active' },
    { cidr: '10.2.0.0/16', id: null, status: null },
  ];
  const contents = {
    addresses: [
      { address: '10.1.0.9', status: 'active' },
      { address: '10.64.0.1', status: null },
    ],
    ranges: [{ start: '10.1.4.0', end: '10.1.4.99', status: 'active' }],
  };
  /** The words for a network, when all of `read` is known. */
  const wordsOf = (cidr: string, read: { prefixes: string[]; contents: string[] }): string => {
    const model = createMapModel(root, WHOLE[4], prefixes, read.prefixes.map(block));
    const marks = createMarks(model, contents, read.contents.map(block));
    const item = model.find(block(cidr)) as MapItem;
    return itemText(item, stateOf(item, model, marks))
      .split(', ')
      .slice(1, -1)
      .join(', ');
  };

  test.each([
    ['10.1.0.0/16', 'active'],
    ['10.2.0.0/16', 'you may not read it'],
    ['10.1.0.9/32', 'address, active'],
    ['10.64.0.1/32', 'address, you may not read it'],
    ['10.1.4.17/32', 'in a range'],
    ['10.1.4.0/26', 'in a range'],
    ['10.1.4.0/24', 'no prefix, in use'],
    ['10.64.0.0/10', 'no prefix, in use'],
    ['10.2.0.1/32', 'in a prefix that you may not read'],
    ['10.1.0.10/32', 'free'],
    ['10.128.0.0/9', 'free'],
  ])('%s is %s', (cidr, words) => {
    expect(wordsOf(cidr, { prefixes: ['10.0.0.0/8'], contents: ['10.0.0.0/8'] })).toBe(words);
  });

  test('is free only where everything was read', () => {
    const all = ['10.0.0.0/8'];
    expect(wordsOf('10.128.0.0/9', { prefixes: [], contents: all })).toBe('not read');
    expect(wordsOf('10.128.0.0/9', { prefixes: all, contents: [] })).toBe('addresses not read');
    const half = ['10.128.0.0/10', '10.192.0.0/10'];
    expect(wordsOf('10.128.0.0/9', { prefixes: half, contents: all })).toBe('not read');
    expect(wordsOf('10.200.0.0/16', { prefixes: half, contents: half })).toBe('free');
    // What was read is said, though it is not everything.
    expect(wordsOf('10.64.0.0/10', { prefixes: all, contents: [] })).toBe('no prefix, in use');
  });
});
