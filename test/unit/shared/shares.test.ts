import { describe, expect, test } from '@jest/globals';
import { mayTakeMore, shareOut, type Demand } from '../../../domain/dispatch/shares.ts';

const half = (capacity: number) => ({ capacity, sharePercent: 50 });
const demand = (tenantId: string, waiting: number, held = 0): Demand => ({
  tenantId,
  held,
  waiting,
});
const grants = (demands: readonly Demand[], capacity: number, sharePercent = 50) =>
  Object.fromEntries(shareOut(demands, { capacity, sharePercent }));

describe('slots that tenants share', () => {
  test('are given to one tenant up to half of them', () => {
    expect(grants([demand('a', 110)], 100)).toEqual({ a: 50 });
    expect(grants([demand('a', 110, 50)], 100)).toEqual({});
    expect(grants([demand('a', 3)], 100)).toEqual({ a: 3 });
  });

  test('are given to several tenants in equal parts, with one part left', () => {
    expect(grants([demand('a', 110), demand('b', 110)], 100)).toEqual({ a: 34, b: 33 });
    expect(grants([demand('a', 99), demand('b', 99), demand('c', 2)], 90)).toEqual({
      a: 30,
      b: 29,
      c: 2,
    });
  });

  test('go first to the tenant that holds the least', () => {
    expect(grants([demand('a', 10, 50), demand('b', 1)], 51)).toEqual({ b: 1 });
  });

  test('are left for the next tenant, however many tenants take what they can', () => {
    const tenants: Demand[] = [];
    for (let n = 0; n < 6; n++) {
      tenants.push(demand(`t${n}`, 1_000));
      const given = shareOut(tenants, half(100));
      expect(given.get(`t${n}`)).toBeGreaterThan(0);
      for (const tenant of tenants) tenant.held += given.get(tenant.tenantId) ?? 0;
    }
  });

  test.each([1, 2, 3])('are at least one for a tenant if there are %i in all', (capacity) => {
    expect(grants([demand('a', 9)], capacity).a).toBeGreaterThanOrEqual(1);
  });

  test('are not given when there are fewer than are held, because a worker has ended', () => {
    expect(grants([demand('a', 1), demand('b', 0, 50)], 20)).toEqual({});
  });

  test('can be given in other parts', () => {
    expect(grants([demand('a', 110)], 100, 80)).toEqual({ a: 80 });
    expect(grants([demand('a', 110)], 100, 100)).toEqual({ a: 100 });
    expect(grants([demand('a', 110)], 100, 1)).toEqual({ a: 1 });
    expect(mayTakeMore(0, 1, 1)).toBe(true);
  });
});
