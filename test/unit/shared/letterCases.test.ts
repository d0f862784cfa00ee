import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { letterCases } from '../../../db/core/like.ts';

/** What `lower` of PostgreSQL makes of a text with the locale C. */
const stored = (text: string) => text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());

test('a text of ASCII letters has one form', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary-ascii' }), (text) => {
      expect(letterCases(text)).toEqual([text.toLowerCase()]);
    }),
  );
});

test('the stored form of a text is found by its lower case, its capitals and itself', () => {
  const words = fc.array(fc.constantFrom('Århus', 'ÖSTRA', 'мост', 'Москва', 'rack', 'R2'));
  fc.assert(
    fc.property(words, (parts) => {
      const text = parts.join(' ');
      expect(letterCases(text)).toContain(stored(text));
      expect(letterCases(text.toUpperCase())).toContain(stored(text.toLowerCase()));
      expect(letterCases(text.toLowerCase())).toContain(stored(text.toUpperCase()));
      expect(letterCases(text).length).toBeLessThanOrEqual(4);
      const decomposed = letterCases(text.normalize('NFD'));
      expect(decomposed).toEqual(expect.arrayContaining(letterCases(text)));
      expect(decomposed).toContain(stored(text.normalize('NFD')));
      expect(decomposed.length).toBeLessThanOrEqual(8);
    }),
  );
});
