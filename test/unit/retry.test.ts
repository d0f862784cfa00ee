import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { DEFAULT_RETRY, mayRetry, retryDelayMs, type RetryPolicy } from '../../domain/retry.ts';

const policies = fc.record<RetryPolicy>({
  maxAttempts: fc.integer({ min: 1, max: 100 }),
  initialIntervalSeconds: fc.double({ min: 0.05, max: 86_400, noNaN: true }),
  backoffCoefficient: fc.double({ min: 1, max: 10, noNaN: true }),
  maxIntervalSeconds: fc.double({ min: 0.05, max: 86_400, noNaN: true }),
  nonRetryableCodes: fc.constant([]),
});

test('waits never shrink and never pass their bound', () => {
  fc.assert(
    fc.property(policies, fc.integer({ min: 1, max: 99 }), (policy, attempt) => {
      const now = retryDelayMs(policy, attempt);
      const next = retryDelayMs(policy, attempt + 1);
      expect(next).toBeGreaterThanOrEqual(now);
      expect(next).toBeLessThanOrEqual(Math.round(policy.maxIntervalSeconds * 1_000));
      expect(Number.isInteger(now)).toBe(true);
    }),
  );
});

test('the first waits of the default', () => {
  expect([1, 2, 3, 7, 50].map((attempt) => retryDelayMs(DEFAULT_RETRY, attempt))).toEqual([1_000, 2_000, 4_000, 60_000, 60_000]);
});

test('an attempt follows while there are any left and the code allows it', () => {
  const policy = { ...DEFAULT_RETRY, maxAttempts: 2, nonRetryableCodes: ['fatal'] };
  expect([mayRetry(policy, 1, 'any'), mayRetry(policy, 2, 'any'), mayRetry(policy, 1, 'fatal')]).toEqual([true, false, false]);
});
