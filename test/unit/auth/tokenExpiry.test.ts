import { expect, test } from '@jest/globals';
import { DAY_MS, HOUR_MS } from '../../../domain/shared/durations.ts';
import { checkExpiry } from '../../../services/auth/apiTokens/limits.ts';

const NOW = new Date('2026-09-01T12:00:00Z');
const check = (ms: number) => () => checkExpiry(new Date(NOW.getTime() + ms), NOW, 90);

test.each([
  ['by a clock that is ahead', 260],
  ['by the calendar of a zone whose clocks are set back', HOUR_MS],
])('a token may expire in the most days %s', (_, ms) => {
  expect(check(90 * DAY_MS + ms)).not.toThrow();
});

test('a token expires in the future, within the most days', () => {
  expect(check(0)).toThrow('must be in the future');
  expect(check(92 * DAY_MS)).toThrow('must be within 90 days');
});
