import { expect, test } from '@jest/globals';
import { createExpensiveReads } from '../../../api/http/expensiveReads.ts';
import { ok } from '../../../api/http/response.ts';
import type { Route } from '../../../api/http/route.ts';
import { anonymousCaller } from '../../../domain/shared/caller.ts';
import { currentConnectionUser, useConnectionsFor } from '../../../platform/connectionUser.ts';
import { createReadBudgets } from '../../../platform/readBudgets.ts';
import { createSlots } from '../../../platform/slots.ts';

/** One slot, and reads that take 10 ms. */
function setUp(othersAreActive: boolean) {
  let ms = 0;
  const rests: [number, () => void][] = [];
  const slots = createSlots({
    of: 'reads',
    retryAfterSeconds: 1,
    ...{ total: 1, perTenant: 1, perCaller: 1 },
  });
  const reads = createExpensiveReads({
    slots,
    budgets: createReadBudgets({ perSecondMs: 1_000 }),
    othersAreActive: () => othersAreActive,
    now: () => ms,
    rest: (restMs, end) => void rests.push([restMs, end]),
  });
  const caller = { ...anonymousCaller({ requestId: 'req_1', address: null }), tenantId: 'red' };
  const signal = new AbortController().signal;
  const read = (takesMs: number, query: object = { q: 'text' }) =>
    reads.run({ method: 'GET' } as Route, { caller, query, signal }, () => {
      ms += takesMs;
      return Promise.resolve(ok({}));
    });
  return { read, rests };
}

test('a slot rests after a read while other tenants are active, the response does not', async () => {
  const { read, rests } = setUp(true);
  await read(10);
  expect(rests.map(([ms]) => ms)).toEqual([30]);
  await expect(read(10)).rejects.toMatchObject({ code: 'too_many_requests' });
  // Other requests need no slot.
  await read(10, {});
  rests[0]?.[1]();
  await read(10_000);
  expect(rests.map(([ms]) => ms)).toEqual([30, 500]);
});

test('a slot is free right after a read while nobody else is active', async () => {
  const { read, rests } = setUp(false);
  await read(10);
  await read(10);
  expect(rests).toEqual([]);
});

test('beyond the budget, lists leave out their counts, and other expensive reads are refused', async () => {
  const budgets = createReadBudgets({ perSecondMs: 1_000, now: () => 0 });
  const slots = createSlots({
    of: 'reads',
    retryAfterSeconds: 1,
    ...{ total: 8, perTenant: 8, perCaller: 8 },
  });
  const reads = createExpensiveReads({ slots, budgets });
  const caller = { ...anonymousCaller({ requestId: 'req_1', address: null }), tenantId: 'red' };
  const signal = new AbortController().signal;
  const countsAreRead = (query: object, route = {}) =>
    useConnectionsFor({ part: 'requests', key: 'red' }, async () => {
      let isCounted = false;
      await reads.run({ method: 'GET', ...route } as Route, { caller, query, signal }, () => {
        isCounted = currentConnectionUser()?.leavesOutCounts !== true;
        return Promise.resolve(ok({}));
      });
      return isCounted;
    });
  budgets.note({ ...caller, tenantId: 'blue' });
  expect(await countsAreRead({ count: true })).toBe(true);
  budgets.charge(caller, 60_000);
  expect(await countsAreRead({ count: true, facets: ['status'] })).toBe(false);
  expect(await countsAreRead({})).toBe(true);
  await expect(countsAreRead({ count: true, q: 'text' })).rejects.toThrow('more time');
  await expect(countsAreRead({}, { expensiveRead: {} })).rejects.toThrow('more time');
});
