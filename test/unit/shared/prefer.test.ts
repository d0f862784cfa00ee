import { expect, test } from '@jest/globals';
import { preferencesIn, readPrefer } from '../../../api/http/prefer.ts';

test.each([
  ['', 0, false],
  ['wait=10', 10_000, false],
  ['Timing, WAIT = "010"; strict', 10_000, true],
  ['respond-async, wait=600', 60_000, false],
  ['wait=0, timing=true', 0, true],
  // Of a repeated preference the first counts (RFC 7240, section 2).
  ['wait=5, wait=50', 5_000, false],
  ['x="timing"', 0, false],
])('reads Prefer: %s', (header, waitMs, timing) => {
  expect(preferencesIn(header)).toEqual({ waitMs, timing });
  expect(readPrefer(header)).toEqual({ waitMs, timing });
});

test.each(['wait', 'wait=', 'wait=-1', 'wait=1.5', 'wait=1e3', 'wait=9999999'])(
  'refuses Prefer: %s, and takes it for a request that does not wait',
  (header) => {
    expect(preferencesIn(header)).toEqual({ waitMs: undefined, timing: false });
    expect(() => readPrefer(header)).toThrow('whole number of seconds');
  },
);
