import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Type } from 'typebox';
import { defineJobType, JobFailure } from '../../../domain/jobs/jobType.ts';
import {
  countedAttempts,
  DEFAULT_RETRY,
  lastAttemptOf,
  mayRetry,
  retryDelayMs,
  withPolicy,
  type RetryPolicy,
} from '../../../domain/jobs/retry.ts';
import { systemCaller } from '../../../domain/shared/caller.ts';
import { newJobRow } from '../../../services/jobs/newJob.ts';
import { DEFAULT_DELIVERY_RETRY, jobRetryPolicy } from '../../../domain/webhooks/webhooks.ts';
import { planRetry } from '../../../services/jobs/lifecycle.ts';

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
  expect([1, 2, 3, 7, 50].map((attempt) => retryDelayMs(DEFAULT_RETRY, attempt))).toEqual([
    1_000, 2_000, 4_000, 60_000, 60_000,
  ]);
});

test('an attempt follows while there are any left and the code allows it', () => {
  const policy = { ...DEFAULT_RETRY, maxAttempts: 2, nonRetryableCodes: ['fatal'] };
  expect([
    mayRetry(policy, 1, 'any'),
    mayRetry(policy, 2, 'any'),
    mayRetry(policy, 1, 'fatal'),
  ]).toEqual([true, false, false]);
});

test('waits that are given one by one, the last for all that follow', () => {
  const policy = {
    ...DEFAULT_RETRY,
    maxIntervalSeconds: 86_400,
    intervalsSeconds: [5, 300, 7_200],
  };
  expect([1, 2, 3, 4, 50].map((attempt) => retryDelayMs(policy, attempt))).toEqual([
    5_000, 300_000, 7_200_000, 7_200_000, 7_200_000,
  ]);
});

test('waits that a job or a type lists are not shortened to a maximum that it does not have', () => {
  const waits = (policy: RetryPolicy) =>
    [1, 2, 3, 4].map((attempt) => retryDelayMs(policy, attempt) / 1_000);
  const intervalsSeconds = [60, 300, 3_600];
  expect(waits(withPolicy(DEFAULT_RETRY, { intervalsSeconds }))).toEqual([60, 300, 3_600, 3_600]);
  const capped = { intervalsSeconds, maxIntervalSeconds: 300 };
  expect(waits(withPolicy(DEFAULT_RETRY, capped))).toEqual([60, 300, 300, 300]);
  expect(withPolicy(DEFAULT_RETRY, { maxAttempts: 5 })).toEqual({
    ...DEFAULT_RETRY,
    maxAttempts: 5,
  });

  const type = defineJobType({
    name: 'test.listed',
    summary: 'Lists its delays',
    payload: Type.Object({}),
    retry: { maxAttempts: 5, intervalsSeconds },
    timeoutMs: 1_000,
    lane: 'inline',
    run: () => Promise.resolve({}),
  });
  expect(waits(type.retry)).toEqual([60, 300, 3_600, 3_600]);
  const { retryPolicy } = newJobRow(
    {
      type,
      payload: {},
      retryPolicy: { intervalsSeconds: [7_200] },
      caller: systemCaller('acme', 'req_1'),
    },
    { id: 'job_1', now: new Date() },
  );
  expect(waits(retryPolicy)).toEqual([7_200, 7_200, 7_200, 7_200]);
});

test('jitter lengthens a wait by up to its part', () => {
  const policy = {
    ...DEFAULT_RETRY,
    maxIntervalSeconds: 100,
    intervalsSeconds: [100],
    jitter: 0.1,
  };
  expect([0, 0.5, 1].map((chance) => retryDelayMs(policy, 1, chance))).toEqual([
    100_000, 105_000, 110_000,
  ]);
  const drawn = Array.from({ length: 200 }, () => retryDelayMs(policy, 1));
  expect(Math.min(...drawn)).toBeGreaterThanOrEqual(100_000);
  expect(Math.max(...drawn)).toBeLessThanOrEqual(110_000);
  expect(new Set(drawn).size).toBeGreaterThan(50);
});

test('the plan of deliveries, and how a webhook shortens it', () => {
  const waits = (policy: Partial<typeof DEFAULT_DELIVERY_RETRY>) => {
    const full = { ...DEFAULT_RETRY, ...jobRetryPolicy({ ...DEFAULT_DELIVERY_RETRY, ...policy }) };
    return Array.from(
      { length: full.maxAttempts - 1 },
      (_, i) => retryDelayMs(full, i + 1, 0) / 1_000,
    );
  };
  expect(waits({})).toEqual([5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]);
  expect(waits({ maxAttempts: 3 })).toEqual([5, 300]);
  expect(waits({ maxIntervalSeconds: 600, maxAttempts: 5 })).toEqual([5, 300, 600, 600]);
});

test.each([
  [undefined, 1_000],
  [300, 1_000],
  [30_000, 30_000],
  [3_600_000, 3_600_000],
  [7_200_000, 3_600_000],
])(
  'a Retry-After of %s ms is honoured up to one hour, and not before the plan: %s ms',
  (retryAfterMs, expected) => {
    const failure = new JobFailure(
      'http_status',
      'busy',
      retryAfterMs === undefined ? {} : { retryAfterMs },
    );
    expect(planRetry(DEFAULT_RETRY, 1, failure).retryInMs).toBe(expected);
    expect(planRetry(DEFAULT_RETRY, 3, failure).retryInMs).toBeNull();
  },
);

test.each([
  [9, 3],
  [10, 2],
  [11, 2],
])(
  'the first ten interruptions of attempts are free: of %s, 12 attempts count as %s',
  (interruptions, counted) => {
    const job = { attempts: 12, interruptions, retryPolicy: DEFAULT_RETRY };
    expect(countedAttempts(job)).toBe(counted);
    expect(lastAttemptOf(job)).toBe(DEFAULT_RETRY.maxAttempts + 12 - counted);
  },
);
