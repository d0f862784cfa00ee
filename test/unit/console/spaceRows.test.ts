import { describe, expect, test } from '@jest/globals';
import {
  missingFrom,
  rowsIn,
  type Known,
  type SpaceRow,
} from '../../../ui/areas/inventory/space/spaceRows.ts';
import type { Part } from '../../../ui/areas/inventory/space/treeParts.ts';

type Child = { id: string | null; cidr: string };

const child = (third: number): Child => ({ id: `pfx_${third}`, cidr: `10.0.${third}.0/24` });
const page = (thirds: readonly number[], nextCursor: string | null, free: string[] = []) => ({
  ...{ children: thirds.map(child), nextCursor, free, exact: true, complete: true },
});
const known = (
  parts: readonly (readonly [Part, ReturnType<typeof page>])[],
  pinned: readonly Child[] = [],
): Known<Child> => ({
  parts: parts.map(([part, read]) => ({ part, page: read })),
  pinned,
});
const rowOf = (prefix: Child): SpaceRow<Child> => ({
  ...{ kind: 'prefix', key: String(prefix.id), prefix, children: undefined },
});
const shown = (of: Known<Child>) =>
  rowsIn('top', of, rowOf)?.map((row) =>
    row.kind === 'prefix' ? row.prefix.cidr : row.kind === 'free' ? `free ${row.cidr}` : row.text,
  );

const HEAD = [{ cursor: null }, page([0, 1], 'a', ['10.0.2.0/24'])] as const;

describe('what is directly in a prefix', () => {
  test('is read on from what is shown, until there is no more', () => {
    expect(shown(known([]))).toBeUndefined();
    expect(shown(known([HEAD]))).toEqual([
      ...['10.0.0.0/24', '10.0.1.0/24', 'free 10.0.2.0/24', 'Reading more …'],
    ]);
    const all = known([HEAD, [{ cursor: 'a' }, page([3], null)]]);
    expect(shown(all)).toEqual([
      ...['10.0.0.0/24', '10.0.1.0/24', 'free 10.0.2.0/24', '10.0.3.0/24'],
    ]);
  });

  test('says what its free networks leave out', () => {
    const [part, read] = [{ cursor: null }, page([0], null, ['10.0.1.0/24'])];
    const rows = (about: object) => shown(known([[part, { ...read, ...about }]]))?.slice(2);
    expect(rows({})).toEqual([]);
    expect(rows({ complete: false })).toEqual(['More free networks are not shown']);
    expect(rows({ exact: false })).toEqual(['Networks without a prefix may have addresses in use']);
    expect(rows({ complete: false, exact: false })).toHaveLength(2);
  });

  test('is shown around a network that is far from its start, with ways to what is between', () => {
    const far = known([HEAD], [child(90)]);
    expect(missingFrom(far)).toEqual([child(90)]);
    expect(shown(far)?.slice(-2)).toEqual(['Show those after 10.0.1.0/24', '10.0.90.0/24']);
    const jumped = [HEAD, [{ from: '10.0.90.0/24' }, page([90, 91], 'z')]] as const;
    expect(missingFrom(known(jumped, [child(90)]))).toEqual([]);
    expect(shown(known(jumped))?.slice(3)).toEqual([
      ...['Show those after 10.0.1.0/24', 'Show those before 10.0.90.0/24'],
      ...['10.0.90.0/24', '10.0.91.0/24', 'Reading more …'],
    ]);
    const before = [...jumped, [{ before: '10.0.90.0/24' }, page([50, 60], null)]] as const;
    expect(shown(known(before))?.slice(4, 7)).toEqual([
      ...['Show those before 10.0.50.0/24', '10.0.50.0/24', '10.0.60.0/24'],
    ]);
  });

  test('has no gap and no double once both parts meet', () => {
    const met = known([
      HEAD,
      [{ from: '10.0.5.0/24' }, page([5], 'z')],
      [{ before: '10.0.5.0/24' }, page([1, 3, 4], null)],
    ]);
    expect(shown(met)).toEqual([
      ...['10.0.0.0/24', '10.0.1.0/24', 'free 10.0.2.0/24'],
      ...['10.0.3.0/24', '10.0.4.0/24', '10.0.5.0/24', 'Reading more …'],
    ]);
  });
});
