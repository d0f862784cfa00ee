import { expect, test } from '@jest/globals';
import { PlanSnapshot } from '../../../domain/inventory/planSnapshot.ts';
import { spanOf } from '../../../domain/inventory/prefixTree.ts';
import type { Row } from '../../../domain/inventory/resource.ts';
import { SortedEntries } from '../../../domain/inventory/sortedEntries.ts';
import { Spans } from '../../../domain/inventory/spans.ts';

const range = (id: string, startAddress: string, endAddress: string): Row => ({
  ...{ id, version: 1, vrfId: 'vrf_1', tenantId: 'red', createdAt: '', updatedAt: '' },
  ...{ startAddress, endAddress },
});
const candidate = range('candidate', '10.0.0.20', '10.0.0.60');
const RANGES = [
  range('c', '10.0.0.4', '10.0.0.50'),
  range('d', '10.0.0.6', '10.0.0.40'),
  range('b', '10.0.0.30', '10.0.0.70'),
  range('a', '10.0.0.30', '10.0.0.90'),
];

test.each([
  ['as they are', RANGES],
  ['in reverse', RANGES.toReversed()],
])('overlapping ranges have the order of their addresses, loaded %s', (_, rows) => {
  const snapshot = new PlanSnapshot();
  const spans = new Spans(snapshot);
  for (const _added of snapshot.addLoadedRows(
    rows.map((row) => ({ resource: 'ip-ranges', row })),
  )) {
    // The plan would pause here.
  }
  const found = spans.overlappingRanges('vrf_1', spanOf(candidate));
  expect(found.map(({ row }) => row.id)).toEqual(['c', 'd', 'b', 'a']);
});

test('entries are found by position, added many or few at a time, and removed', () => {
  const entries = Array.from({ length: 60 }, (_, i) => {
    const row = range(`r${i}`, `10.0.0.${(i * 37) % 50}`, '10.0.0.90');
    return { row, span: spanOf(row) };
  });
  const sorted = new SortedEntries<(typeof entries)[number]>(({ span }) => span);
  const present = new Set<(typeof entries)[number]>();
  const expectFound = () => {
    const found = sorted.startingIn(spanOf(range('', '10.0.0.10', '10.0.0.29')));
    const inside = [...present].filter(({ row }) => /\.(1|2)\d$/.test(String(row.startAddress)));
    expect(found.map(({ row }) => row.id).sort()).toEqual(inside.map(({ row }) => row.id).sort());
    const starts = found.map(({ span }) => span.first);
    expect(starts).toEqual(starts.toSorted((a, b) => Number(a - b)));
  };
  const add = (from: number, to: number) => {
    for (const entry of entries.slice(from, to)) {
      sorted.insert(entry);
      present.add(entry);
    }
    expectFound();
  };
  add(0, 5);
  add(5, 50);
  for (const entry of entries.slice(3, 40)) {
    sorted.remove(entry);
    present.delete(entry);
  }
  expectFound();
  add(50, 60);
});
