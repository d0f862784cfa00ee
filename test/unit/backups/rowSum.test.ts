import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createRowSum } from '../../../db/backups/rowSum.ts';
import { propertyRuns } from '../../support/effort.ts';

const noPause = () => Promise.resolve();

/** The checksum of rows that arrive in pieces of `size` bytes. */
async function sumOf(rows: readonly string[], size = 1_000): Promise<string> {
  const sum = createRowSum();
  const bytes = Buffer.from(rows.map((row) => `${row}\n`).join(''));
  for (let start = 0; start < bytes.length; start += size)
    await sum.add(bytes.subarray(start, start + size), noPause);
  return sum.digest();
}

const row = fc.string({ unit: fc.constantFrom('a', 'b', 'é'), maxLength: 4 });

test('a checksum of rows depends on the rows and how often each is there, and on nothing else', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(row, { maxLength: 8 }),
      fc.array(row, { maxLength: 8 }),
      fc.integer({ min: 1, max: 7 }),
      async (rows, others, size) => {
        const isSame = JSON.stringify(rows.toSorted()) === JSON.stringify(others.toSorted());
        expect((await sumOf(rows)) === (await sumOf(others, size))).toBe(isSame);
        expect(await sumOf(rows.toReversed(), size)).toBe(await sumOf(rows));
        expect(await sumOf([...rows, 'a'])).not.toBe(await sumOf(rows));
      },
    ),
    { numRuns: propertyRuns(200) },
  );
});
