import { describe, expect, test } from '@jest/globals';
import { etagOfRecord, expectedVersion } from '../../../api/http/etag.ts';
import { AppError } from '../../../domain/shared/errors.ts';

/** The version that a header requires, or the code of its error. */
function read(ifMatch: string | undefined): number | string | undefined {
  try {
    return expectedVersion(ifMatch);
  } catch (error) {
    if (error instanceof AppError) return error.code;
    throw error;
  }
}

const DIGEST = '0123456789abcdef';

test.each<[string | undefined, number | string | undefined]>([
  [undefined, undefined],
  [' * ', undefined],
  ['"4"', 4],
  ['"4.17"', 4],
  [`"4-${DIGEST}"`, 4],
  [`"4", "4-${DIGEST}"`, 4],
  [`"4.2"\t,"4.3-${DIGEST}"`, 4],
  ['"made elsewhere", "4"', 4],
  ['"4", "5"', 'invalid_request'],
  // As proxies that compress change it.
  ['W/"4"', 4],
  [`W/"4-${DIGEST}"`, 4],
  [`"4-${DIGEST}-gzip"`, 4],
  [`"4-${DIGEST}-br"`, 4],
  ['W/"4-gzip"', 4],
  ['"4", W/"3"', 'invalid_request'],
  [`"4-${DIGEST}-draft"`, 'version_conflict'],
  ['"made elsewhere"', 'version_conflict'],
  ['"4" "5"', 'invalid_request'],
  ['"4",', 'invalid_request'],
  ['4', 'invalid_request'],
  ['', 'invalid_request'],
])('If-Match: %s requires %s', (ifMatch, expected) => {
  expect(read(ifMatch)).toBe(expected);
});

test('the tag of a response with a part that runs with the clock is made without it', () => {
  const tagOf = (oldestSeconds: number, position: number) => {
    const body = { version: 4, queue: { position, oldestSeconds } };
    return etagOfRecord({ body, taggedAs: { ...body, queue: position } }, JSON.stringify(body));
  };
  expect(tagOf(1, 7)).toBe(tagOf(2, 7));
  expect(tagOf(1, 7)).not.toBe(tagOf(1, 6));
});

describe('the tag of a response', () => {
  const tagOf = (body: object, containsSecret = false) =>
    etagOfRecord({ body, containsSecret }, JSON.stringify(body));

  test('with a record differs with any part of it, and names its version', () => {
    const tag = tagOf({ version: 7, used: 1 });
    expect(tag).toMatch(/^"7-[0-9a-f]{16}"$/);
    expect(expectedVersion(tag)).toBe(7);
    expect(tagOf({ version: 7, used: 1 })).toBe(tag);
    expect(tagOf({ version: 7, used: 2 })).not.toBe(tag);
  });

  test('with a secret has no digest of it', () => {
    expect(tagOf({ version: 7, secret: 'chosen' }, true)).toBe('"7"');
  });

  test.each([[[]], [{ items: [] }], [{ version: null }], [{ version: '0.3.0' }]])(
    'without a record is missing: %j',
    (body) => expect(tagOf(body)).toBeUndefined(),
  );
});
