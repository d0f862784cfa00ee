import { expect, test } from '@jest/globals';
import { createStamper } from '../../../db/inventory/apply.ts';
import type { Row } from '../../../domain/inventory/resource.ts';

const NOW = new Date('2026-11-28T12:00:00.000Z');

const row = (version: number, createdAt: string, updatedAt = createdAt): Row => ({
  ...{ id: 'reg_1', version, name: 'x' },
  createdAt: `2026-11-28T${createdAt}Z`,
  updatedAt: `2026-11-28T${updatedAt}Z`,
});

/** The times of the versions that changes of a record make in a commit that began at `NOW`. */
function timesOf(before: Row, changes = 1): string[] {
  const { stamp } = createStamper(NOW);
  return Array.from({ length: changes }, () => {
    const { after } = stamp({ resource: 'regions', id: 'reg_1', before, after: before });
    return String(after?.updatedAt).slice(11);
  });
}

test('a change has the time at which its commit began', () => {
  expect(timesOf(row(1, '11:00:00.000'))).toEqual(['12:00:00.000Z']);
  expect(timesOf(row(1, '11:59:59.999'))).toEqual(['12:00:00.000Z']);
});

test('a change is later than the version that it replaces, and than the creation', () => {
  expect(timesOf(row(2, '11:00:00.000', '12:00:05.000'))).toEqual(['12:00:05.001Z']);
  expect(timesOf(row(1, '12:00:05.000'))).toEqual(['12:00:05.001Z']);
  expect(timesOf(row(1, '12:00:05.000', '12:00:01.000'))).toEqual(['12:00:05.001Z']);
  expect(timesOf(row(1, '11:00:00.000'), 3)).toEqual([
    '12:00:00.000Z',
    '12:00:00.001Z',
    '12:00:00.002Z',
  ]);
});

test('a record that is created again goes on with the versions of its predecessor', () => {
  const { stamp } = createStamper(NOW, new Map([['tags/former', 7]]));
  const before = row(3, '11:00:00.000');
  const versions = [
    { before, after: before },
    { before, after: null },
    { before: null, after: before },
    { before, after: before },
  ].map((step) => stamp({ resource: 'tags', id: 'reg_1', ...step }).after?.version);
  expect(versions).toEqual([4, undefined, 5, 6]);
  const { after } = stamp({ resource: 'tags', id: 'former', before: null, after: before });
  expect(after?.version).toBe(8);
});

test('a new record is created and updated at the same time', () => {
  const { stamp } = createStamper(NOW);
  const after = row(0, '00:00:00.000');
  expect(stamp({ resource: 'regions', id: 'reg_1', before: null, after }).after).toMatchObject({
    version: 1,
    createdAt: NOW.toISOString(),
    updatedAt: NOW.toISOString(),
  });
});
