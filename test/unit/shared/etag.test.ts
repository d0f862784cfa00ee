import { expect, test } from '@jest/globals';
import { expectedVersion } from '../../../api/http/etag.ts';
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
  ['"made elsewhere", "4", W/"3"', 4],
  ['"4", "5"', 'invalid_request'],
  ['W/"4"', 'version_conflict'],
  ['"made elsewhere"', 'version_conflict'],
  ['"4" "5"', 'invalid_request'],
  ['"4",', 'invalid_request'],
  ['4', 'invalid_request'],
  ['', 'invalid_request'],
])('If-Match: %s requires %s', (ifMatch, expected) => {
  expect(read(ifMatch)).toBe(expected);
});
