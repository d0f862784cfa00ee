import { expect, test } from '@jest/globals';
import type { Planned } from '../../../domain/inventory/planning.ts';
import { MissingData, PlanSnapshot } from '../../../domain/inventory/planSnapshot.ts';
import { attributeRequested } from '../../../domain/inventory/requestedEffects.ts';
import type { Row } from '../../../domain/inventory/resource.ts';

const COUNT = 1_000;

const tag = (n: number, version = 1): Row => ({
  id: `tag_${n}`,
  name: `Tag ${n}`,
  version,
  createdAt: '2026-01-01T00:00:00Z',
  updatedAt: '2026-01-01T00:00:00Z',
});

/** Exhausts a generator. Returns how often it lets other work run. */
const pausesOf = (parts: Generator<void>): number => [...parts].length;

test('what was planned is undone in parts', () => {
  const snapshot = new PlanSnapshot();
  for (let n = 0; n < COUNT; n++) snapshot.put('tags', tag(n));
  expect(pausesOf(snapshot.undoTo(0))).toBeGreaterThanOrEqual(COUNT / 20);
  expect(snapshot.changeCount).toBe(0);
});

test('a plan is undone in parts when a record that it was made from has changed', () => {
  const snapshot = new PlanSnapshot();
  const rows = (version: number) => [{ resource: 'tags', row: tag(0, version) }] as const;
  expect(pausesOf(snapshot.addLoadedRows(rows(1)))).toBe(0);
  for (let n = 1; n < COUNT; n++) snapshot.put('tags', tag(n));
  expect(pausesOf(snapshot.addLoadedRows(rows(2)))).toBeGreaterThanOrEqual((COUNT - 1) / 20 - 1);
  expect(snapshot.takeOutdated()).toBe(true);
  expect(snapshot.changeCount).toBe(0);
  expect(snapshot.peek('tags', 'tag_0')?.version).toBe(2);
});

test('effects of one mutation are read in parts', () => {
  const effects = Array.from({ length: COUNT }, (_, n) => ({
    action: 'update',
    resource: 'tags',
    id: `tag_${n}`,
    label: `Tag ${n}`,
    reason: 'reparented',
    changes: [],
  }));
  const planned = { operation: 'update', subject: undefined, effects } as unknown as Planned;
  expect(pausesOf(attributeRequested([planned], []))).toBeGreaterThanOrEqual(COUNT / 100);
});

test('what a plan lacks has no stack trace; other errors keep theirs', () => {
  const snapshot = new PlanSnapshot();
  let missing: unknown;
  try {
    snapshot.get('tags', 'tag_1');
  } catch (error) {
    missing = error;
  }
  expect(missing).toBeInstanceOf(MissingData);
  const { needs, stack } = missing as MissingData;
  expect(needs).toEqual([{ kind: 'row', resource: 'tags', id: 'tag_1' }]);
  // Libraries that other files of this process load change the text of a stack, but not its lines of calls.
  const CALL = /^\s+at /m;
  expect(stack).not.toMatch(CALL);
  expect(new Error('other').stack).toMatch(CALL);
});
