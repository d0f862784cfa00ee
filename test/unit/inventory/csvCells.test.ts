import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { cellOfText, textOfCell } from '../../../domain/inventory/imports.ts';
import { propertyRuns } from '../../support/effort.ts';

const text = fc
  .array(fc.constantFrom("'", '=', '+', '-', '@', '\t', '\r', '\n', '＝', '＠', 'a', ' ', '1'), {
    maxLength: 6,
  })
  .map((characters) => characters.join(''));

test('no cell of a text begins like a formula, and every text can be read back', () => {
  fc.assert(
    fc.property(text, (value) => {
      const cell = cellOfText(value);
      expect(cell).not.toMatch(/^[=+\-@\t\r\n＝＠]/);
      expect(textOfCell(cell)).toBe(value);
    }),
    { numRuns: propertyRuns(2_000) },
  );
});

test('a file that nobody escaped is read as it is', () => {
  for (const cell of ['=1+1', '-5', "'a", "'", 'a', '']) expect(textOfCell(cell)).toBe(cell);
});
