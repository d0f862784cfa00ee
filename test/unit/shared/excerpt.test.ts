import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { storableJson } from '../../../db/core/storableJson.ts';
import { cut, excerpt } from '../../../domain/shared/excerpt.ts';

const text = fc.string({ unit: 'grapheme' });

test('a text is cut between characters, never inside one', () => {
  fc.assert(
    fc.property(text, fc.nat(20), (whole, max) => {
      const start = cut(whole, max);
      expect([start.isWellFormed(), whole.startsWith(start)]).toEqual([true, true]);
      expect(start.length).toBeLessThanOrEqual(max);
      expect(start.length).toBeGreaterThanOrEqual(Math.min(whole.length, max) - 1);
    }),
  );
  expect(excerpt('12😀', 3)).toBe('12…');
  expect(excerpt('1😀', 3)).toBe('1😀');
});

test('JSON for PostgreSQL has neither NUL nor half of a surrogate pair', () => {
  const odd = fc.string({
    unit: fc.constantFrom('\0', '\ud83d', '\ude00', '\\', 'u0000', '"', 'é'),
  });
  fc.assert(
    fc.property(odd, odd, (name, value) => {
      const storable = (each: string) => each.toWellFormed().replaceAll('\0', '\ufffd');
      expect(JSON.parse(storableJson({ [`k${name}`]: [value] }))).toEqual({
        [`k${storable(name)}`]: [storable(value)],
      });
    }),
  );
});
