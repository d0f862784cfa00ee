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
    { numRuns: propertyRuns(15) },
  );
});

describe('a chosen secret', () => {
  const base64 = (bytes: number) => Buffer.alloc(bytes, 1).toString('base64');
  const encoded = (text: string) => `whsec_${Buffer.from(text).toString('base64')}`;
  test.each([
    ['in the format', `whsec_${base64(32)}`, `whsec_${base64(32)}`, []],
    [
      'in the format without padding',
      `whsec_${base64(25).slice(0, -2)}`,
      `whsec_${base64(25)}`,
      [],
    ],
    ['in the format, longer than usual', `whsec_${base64(65)}`, `whsec_${base64(65)}`, []],
    ['in the format, short', `whsec_${base64(8)}`, `whsec_${base64(8)}`, ['short_secret']],
    ['a text', 'x'.repeat(24), encoded('x'.repeat(24)), []],
    ['a short text', 's3cr3t!!', encoded('s3cr3t!!'), ['short_secret']],
    ['a long text', '\u{1f511}'.repeat(256), encoded('\u{1f511}'.repeat(256)), []],
    [
      'a text of 22 characters in 24 bytes',
      `${'x'.repeat(20)}éé`,
      encoded(`${'x'.repeat(20)}éé`),
      [],
    ],
    [
      'whsec_ without base64',
      `whsec_${'!'.repeat(40)}`,
      encoded(`whsec_${'!'.repeat(40)}`),
      ['secret_not_base64'],
    ],
    [
      'whsec_ with 7 bytes',
      `whsec_${base64(7)}`,
      encoded(`whsec_${base64(7)}`),
      ['secret_not_base64', 'short_secret'],
    ],
  ])('%s', (_what, text, secret, warnings) => {
    const normalized = normalizeSecret(text);
    expect(normalized.secret).toBe(secret);
    expect(normalized.warnings.map(({ code }) => code)).toEqual(warnings);
  });

  test('of any text of 8 to 256 characters verifies with its UTF-8 bytes as the key', () => {
    const text = fc
      .string({ unit: 'binary', minLength: 8, maxLength: 256 })
      .filter((each) => !each.startsWith('whsec_'));
    fc.assert(
      fc.property(text, fc.json(), (secret, body) => {
        const id = 'evt_1';
        const timestamp = Math.floor(Date.now() / 1_000);
        const signature = signatureHeader([normalizeSecret(secret).secret], {
          id,
          timestamp,
          body,
        });
        const received = new Webhook(Buffer.from(secret, 'utf8'), { format: 'raw' });
        expect(received.verify(body, headers(id, timestamp, signature))).toEqual(JSON.parse(body));
      }),
      { numRuns: propertyRuns(15) },
    );
  });
});
