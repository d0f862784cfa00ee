import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import {
  normalizeSecret,
  encodeSecret,
  signatureHeader,
} from '../../../domain/webhooks/signing.ts';
import { propertyRuns } from '../../support/effort.ts';

const headers = (id: string, timestamp: number, signature: string) => ({
  'webhook-id': id,
  'webhook-timestamp': String(timestamp),
  'webhook-signature': signature,
});

test('a message verifies with each of its secrets, with no other, and only unchanged', () => {
  const key = fc
    .uint8Array({ minLength: 24, maxLength: 64 })
    .map((bytes) => encodeSecret(Buffer.from(bytes)));
  fc.assert(
    fc.property(
      fc.tuple(key, key, key).filter((keys) => new Set(keys).size === 3),
      fc.json(),
      fc.uuid(),
      ([one, two, other], body, id) => {
        const timestamp = Math.floor(Date.now() / 1_000);
        const sent = headers(id, timestamp, signatureHeader([one, two], { id, timestamp, body }));
        for (const secret of [one, two])
          expect(new Webhook(secret).verify(body, sent)).toEqual(JSON.parse(body));
        expect(() => new Webhook(other).verify(body, sent)).toThrow();
        expect(() => new Webhook(one).verify(`${body} `, sent)).toThrow();
        expect(() => new Webhook(one).verify(body, { ...sent, 'webhook-id': `${id}x` })).toThrow();
        expect(() =>
          new Webhook(one).verify(body, {
            ...sent,
            'webhook-timestamp': String(timestamp + 1),
          }),
        ).toThrow();
      },
    ),
    { numRuns: propertyRuns(50) },
  );
});

describe('a chosen secret', () => {
  const base64 = (bytes: number) => Buffer.alloc(bytes, 1).toString('base64');
  test.each([
    ['in the format', `whsec_${base64(32)}`, `whsec_${base64(32)}`],
    ['a text', 'x'.repeat(24), `whsec_${Buffer.from('x'.repeat(24)).toString('base64')}`],
    ['of 64 bytes', `whsec_${base64(64)}`, `whsec_${base64(64)}`],
    ['of 23 bytes', `whsec_${base64(23)}`, undefined],
    ['of 65 bytes', `whsec_${base64(65)}`, undefined],
    ['a short text', 'x'.repeat(23), undefined],
    ['a long text', 'x'.repeat(65), undefined],
    [
      'a text of 22 characters in 24 bytes',
      `${'x'.repeat(20)}éé`,
      `whsec_${Buffer.from(`${'x'.repeat(20)}éé`).toString('base64')}`,
    ],
    ['that is not base64', `whsec_${'!'.repeat(40)}`, undefined],
  ])('%s', (_what, text, expected) => {
    expect(normalizeSecret(text)).toBe(expected);
  });
});
