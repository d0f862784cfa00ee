import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createVault } from '../../../platform/vault.ts';
import { propertyRuns } from '../../support/effort.ts';

const key = (id: string, fill: number) => ({ id, key: Buffer.alloc(32, fill) });
const vault = createVault([key('a', 1), key('b', 2)]);

test('an encrypted value can be decrypted in its context, with any of the keys', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string(), (text, context) => {
      const wellFormed = text.toWellFormed();
      expect(vault.open(vault.seal(wellFormed, context), context)).toBe(wellFormed);
      expect(vault.open(createVault([key('b', 2)]).seal(wellFormed, context), context)).toBe(
        wellFormed,
      );
    }),
    { numRuns: propertyRuns(30) },
  );
});

test('encrypting a text twice yields different values', () => {
  expect(vault.seal('x', 'c')).not.toBe(vault.seal('x', 'c'));
});

test('a value that was changed, moved or encrypted with another key cannot be decrypted', () => {
  const sealed = vault.seal('secret', 'here');
  expect(() => vault.open(sealed, 'there')).toThrow();
  expect(() => createVault([key('a', 9)]).open(sealed, 'here')).toThrow(
    expect.objectContaining({ code: 'master_key_missing' }),
  );
  expect(() => createVault([key('c', 1)]).open(sealed, 'here')).toThrow('no key a');
  expect(() => createVault([]).seal('x', 'c')).toThrow('HOLDFAST_MASTER_KEYS is not set');
  const bytes = Buffer.from(sealed.split('.')[2] ?? '', 'base64url');
  for (let i = 0; i < bytes.length; i++) {
    const flipped = Buffer.from(bytes);
    flipped[i] = (flipped[i] ?? 0) ^ 1;
    expect(() => vault.open(`v1.a.${flipped.toString('base64url')}`, 'here')).toThrow();
    expect(() =>
      vault.open(`v1.a.${bytes.subarray(0, i).toString('base64url')}`, 'here'),
    ).toThrow();
  }
});
