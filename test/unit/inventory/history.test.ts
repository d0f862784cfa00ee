import { describe, expect, test } from '@jest/globals';
import { stateAt, type RecordChange } from '../../../domain/inventory/history.ts';
import type { Row } from '../../../domain/inventory/resource.ts';

const minute = (n: number) => new Date(Date.UTC(2026, 0, 1, 0, n));
/** A version of a record that was created in the minute 0. */
const row = (version: number, updatedMinute: number): Row => ({
  id: 'sit_1',
  version,
  createdAt: minute(0).toISOString(),
  updatedAt: minute(updatedMinute).toISOString(),
});
const [first, second, third] = [row(1, 0), row(2, 20), row(3, 40)];

describe('between two changes, a state', () => {
  const at = (previous: RecordChange, next: RecordChange | undefined, present: Row | null = null) =>
    stateAt(minute(30), previous, next, present);
  const created = { before: null, after: first };
  const updated = { before: first, after: second };
  const deleted = { before: second, after: null };

  test('is what the first one has made', () => {
    expect(at(updated, { before: second, after: third })).toBe(second);
    expect(at(updated, undefined, second)).toBe(second);
    expect(at(deleted, undefined)).toBeNull();
    expect(at(deleted, created)).toBeNull();
  });

  test('is not known if the second one does not begin there: something has no entry', () => {
    expect(at(updated, { before: first, after: third })).toBeUndefined();
    expect(at(updated, undefined, first)).toBeUndefined();
    expect(at(updated, undefined, null)).toBeUndefined();
    expect(at(deleted, undefined, first)).toBeUndefined();
  });
});

test('of two changes by processes whose clocks differ, the later version counts', () => {
  const updated = { before: first, after: second };
  expect(stateAt(minute(50), updated, undefined, third)).toBe(third);
  expect(stateAt(minute(30), updated, undefined, third)).toBeUndefined();
});

describe('before all entries, a state', () => {
  test.each([
    [-1, null],
    [10, undefined],
    [20, second],
    [30, second],
  ])('follows in the minute %d from the times of the record', (n, state) => {
    expect(stateAt(minute(n), undefined, undefined, second)).toBe(state);
    expect(stateAt(minute(n), undefined, { before: second, after: third }, null)).toBe(state);
  });

  test('is none before its creation, and not known if it was restored later', () => {
    expect(stateAt(minute(-1), undefined, { before: null, after: first }, null)).toBeNull();
    expect(stateAt(minute(30), undefined, { before: null, after: second }, null)).toBeUndefined();
    expect(stateAt(minute(30), undefined, undefined, null)).toBeNull();
  });
});
