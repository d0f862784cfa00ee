import { afterEach, expect, jest, test } from '@jest/globals';
import { openSharedDatabase } from '../../../db/core/connectionPool.ts';
import { createMetrics } from '../../../platform/metrics.ts';
import { tenantKey, useConnectionsFor } from '../../../platform/connectionUser.ts';
import { createLog } from '../../../platform/log.ts';
import { createTenantActivity, tenantActivity } from '../../../platform/tenantActivity.ts';

const [A, B, C] = ['a', 'b', 'c'].map(tenantKey) as [string, string, string];

afterEach(() => {
  jest.restoreAllMocks();
});

test('a tenant that uses the database is active for others, for a quarter of a second', () => {
  let now = 1_000;
  const activity = createTenantActivity(() => now);
  expect(activity.othersAreActive(A)).toBe(false);
  activity.note(A);
  expect(activity.othersAreActive(A)).toBe(false);
  expect(activity.othersAreActive(B)).toBe(true);
  now += 249;
  expect(activity.othersAreActive(B)).toBe(true);
  now += 1;
  expect(activity.othersAreActive(B)).toBe(false);
});

test('uses of its own do not hide those of others', () => {
  let now = 1_000;
  const activity = createTenantActivity(() => now);
  activity.note(B);
  for (let n = 0; n < 3; n++) activity.note(A);
  expect(activity.othersAreActive(A)).toBe(true);
  expect(activity.othersAreActive(B)).toBe(true);
  expect(activity.othersAreActive(C)).toBe(true);
  now += 200;
  activity.note(A);
  now += 100;
  expect(activity.othersAreActive(A)).toBe(false);
  expect(activity.othersAreActive(B)).toBe(true);
});

test('a request whose caller is not known yet is of no tenant', () => {
  const activity = createTenantActivity(() => 0);
  activity.note('address:192.0.2.1');
  expect(activity.othersAreActive(A)).toBe(false);
});

test('every use of the pool for a tenant is noted', async () => {
  jest.spyOn(performance, 'now').mockReturnValue(performance.now());
  const db = openSharedDatabase({
    url: 'postgresql://127.0.0.1:1/none',
    poolSize: 5,
    statementTimeoutMs: 0,
    sharePercent: 100,
    waitMs: 5_000,
    metrics: createMetrics({ role: 'all', version: 'test' }),
    log: createLog('silent', false),
  });
  const use = (key: string) =>
    useConnectionsFor({ part: 'requests', key }, () => db.raw('SELECT 1').catch(() => undefined));
  try {
    await use('address:192.0.2.1');
    expect(tenantActivity.othersAreActive(B)).toBe(false);
    await use(A);
    expect(tenantActivity.othersAreActive(A)).toBe(false);
    expect(tenantActivity.othersAreActive(B)).toBe(true);
  } finally {
    await db.destroy();
  }
});
