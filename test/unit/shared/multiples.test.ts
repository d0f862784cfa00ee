import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { isMultipleOf } from '../../../domain/shared/multiples.ts';

/** A decimal number of an integer and the number of its decimals. */
const decimal = (digits: number, decimals: number) => Number(`${digits}e-${decimals}`);

test('decimal numbers are multiples of decimal steps as whole numbers are', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: -1e12, max: 1e12 }),
      fc.integer({ min: 1, max: 1_000 }),
      fc.integer({ min: 0, max: 6 }),
      (digits, step, decimals) => {
        const isMultiple = isMultipleOf(decimal(digits, decimals), decimal(step, decimals));
        expect(isMultiple).toBe(digits % step === 0);
        expect(isMultipleOf(decimal(digits * step, decimals), decimal(step, decimals))).toBe(true);
      },
    ),
  );
});

test.each([
  [0.07, 0.01, true],
  [123456789.01, 0.01, true],
  [123456789.015, 0.01, false],
  [1e-10, 0.01, false],
  [9007199254740991, 2, false],
  [1e308, 0.5, true],
  [0, 0.1, true],
])('%d of %d: %p', (value, step, expected) => {
  expect(isMultipleOf(value, step)).toBe(expected);
});
