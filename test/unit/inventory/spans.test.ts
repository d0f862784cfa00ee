import { expect, test } from '@jest/globals';
import { PlanSnapshot } from '../../../domain/inventory/planSnapshot.ts';
import { spanOf } from '../../../domain/inventory/prefixTree.ts';
import type { Row } from '../../../domain/inventory/resource.ts';
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
