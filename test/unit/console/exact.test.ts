import { describe, expect, test } from '@jest/globals';
import { exactParts, exactText } from '../../../ui/parts/exact.ts';
import { changedPart } from '../../../ui/parts/diff/change.ts';
import { blocksOf } from '../../../ui/parts/wholeJson.ts';

const characters = (pattern: RegExp): string[] =>
  Array.from({ length: 0x110000 }, (_, code) => String.fromCodePoint(code)).filter((character) =>
    pattern.test(character),
  );

describe('a text of others', () => {
  test('shows every character that cannot be seen, or that turns others around, as a mark', () => {
    const concealed = characters(
      /[\p{Bidi_Control}\p{Default_Ignorable_Code_Point}\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u,
    ).filter((character) => character !== '\n' && character !== '\t');
    expect(concealed.length).toBeGreaterThan(4_000);
    const drawn = concealed.filter((character) => exactText(`a${character}b`).includes(character));
    expect(drawn).toEqual([]);
  });

  test('has them where they are, with their names, and several in a row as one mark', () => {
    expect(exactParts('A \u202Egnp.exe')).toEqual([
      'A ',
      { code: 'U+202E', name: 'right-to-left override', count: 1 },
      'gnp.exe',
    ]);
    expect(exactText('\u200B\u200B\u200Bad\u200Bmin\uFEFF')).toBe(
      '[U+200B ×3]ad[U+200B]min[U+FEFF]',
    );
    expect(exactText('\u001B[31mred\r\uD83D')).toBe('[U+001B][31mred[U+000D][U+D83D]');
  });

  test.each(['', 'plain\n\ttext', 'שלום', 'Füße, 東京', '👩‍👩‍👧 ❤️ 👍🏽', 'a b'])(
    'is as it is: %j',
    (text) => {
      expect(exactText(text)).toBe(text);
    },
  );

  test('has no joined emoji where nothing is joined', () => {
    expect(exactText('a\u200Db 1\uFE0F')).toBe('a[U+200D]b 1[U+FE0F]');
  });

  test('is not cut within a character to emphasize what differs', () => {
    expect(changedPart('disk 😀 ok', 'disk 😁 ok')).toEqual({ start: 5, end: 3 });
    expect(changedPart('disk \u{1F600} ok', 'disk \u{1FA00} ok')).toEqual({ start: 5, end: 3 });
  });
});

describe('a value that is decided on', () => {
  const nested = (depth: number): unknown => (depth === 0 ? 'end' : { in: nested(depth - 1) });

  test('is a tree as long as every line of it has its width', () => {
    expect(
      blocksOf({ headers: Object.fromEntries(Array.from({ length: 500 }, (_, n) => [n, 'x'])) }),
    ).toBe(undefined);
    expect(blocksOf(null)).toBe(undefined);
    expect(blocksOf(nested(11))).toBe(undefined);
  });

  test.each([
    ['long', Array.from({ length: 25_000 }, (_, n) => n)],
    ['deep', nested(90)],
  ])('is complete as text if it is %s', (_, value) => {
    const blocks = blocksOf(value);
    expect(JSON.parse(blocks?.join('\n') ?? '')).toEqual(value);
  });
});
