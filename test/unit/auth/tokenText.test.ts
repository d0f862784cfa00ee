import { randomBytes } from 'node:crypto';
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { hasValidChecksum, isTokenText, tokenText } from '../../../domain/auth/tokenText.ts';

test('a token has a prefix, 43 digits of its secret and 6 of its checksum', () => {
  expect(tokenText('personal', Buffer.alloc(32))).toMatch(/^hft_0{43}[0-9A-Za-z]{6}$/);
  expect(tokenText('service', Buffer.alloc(32, 255))).toMatch(/^hfv_[0-9A-Za-z]{49}$/);
  // CRC-32 of the text before it, in base 62.
  expect(tokenText('personal', Buffer.alloc(32)).slice(-6)).toBe('04TaNB');
});

test('a wrong character, a missing one and another prefix are recognised', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 4, max: 52 }),
      fc.constantFrom('0', 'a', 'Z', '_', '-'),
      (position, character) => {
        const text = tokenText('personal', randomBytes(32));
        expect(hasValidChecksum(text)).toBe(true);
        const changed = text.slice(0, position) + character + text.slice(position + 1);
        expect(hasValidChecksum(changed)).toBe(changed === text);
        expect(hasValidChecksum(text.slice(0, -1))).toBe(false);
        expect(hasValidChecksum(`hfv_${text.slice(4)}`)).toBe(false);
      },
    ),
  );
});

test('tokens of sessions are no API tokens', () => {
  expect(isTokenText('hfa_2Zm0c1Q9lJx3bq7t5vYw8eN4uK6sRdTfGhAiPoLkMnB')).toBe(false);
  expect(isTokenText('hft_')).toBe(true);
  expect(hasValidChecksum('hft_')).toBe(false);
});
