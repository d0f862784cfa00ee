import { describe, expect, it, test } from '@jest/globals';
import { typedNumber } from '../../../ui/parts/form/typedNumber.ts';
import { createIdempotencyKeys } from '../../../ui/app/idempotency.ts';
import { Problem } from '../../../ui/app/problem.ts';
import { errorAt, errorsUnder, objectOf, otherErrors } from '../../../ui/parts/form/fieldErrors.ts';
import { describeRetries, withDefaults } from '../../../ui/parts/form/retryPolicy.ts';

const failure = (status: number, code = 'any') =>
  new Problem({ status, code, title: 'Any', detail: 'Any' });

describe('the idempotency key of a form', () => {
  it('is the same for the same content until its outcome is known', () => {
    const keys = createIdempotencyKeys();
    const first = keys.keyOf({ type: 'core.echo' });
    expect(first).toMatch(/^[0-9a-f]{32}$/);
    expect(keys.keyOf({ type: 'core.echo' })).toBe(first);
    for (const unknown of [0, 500, 503]) {
      keys.end(failure(unknown));
      expect(keys.keyOf({ type: 'core.echo' })).toBe(first);
    }
    keys.end(failure(400));
    const second = keys.keyOf({ type: 'core.echo' });
    expect(second).not.toBe(first);
    keys.end();
    expect(keys.keyOf({ type: 'core.echo' })).not.toBe(second);
  });

  it.each([
    ['the first request is still in progress', failure(409, 'idempotency_in_progress')],
    ['the request was cancelled on its way', new DOMException('Cancelled', 'AbortError')],
    ['a proxy has answered', failure(408, 'unexpected_answer')],
  ])('is kept when %s', (_when, error) => {
    const keys = createIdempotencyKeys();
    const first = keys.keyOf({ type: 'core.echo' });
    keys.end(error);
    expect(keys.keyOf({ type: 'core.echo' })).toBe(first);
    // What React Query reports of a request that has succeeded.
    keys.end(null);
    expect(keys.keyOf({ type: 'core.echo' })).not.toBe(first);
  });

  it('is another one for other content', () => {
    const keys = createIdempotencyKeys();
    const first = keys.keyOf({ type: 'core.echo' });
    expect(keys.keyOf({ type: 'core.sleep' })).not.toBe(first);
    expect(keys.keyOf(undefined)).toMatch(/^[0-9a-f]{32}$/);
  });
});

describe('errors of fields', () => {
  const errors = [
    { pointer: '/payload/url', detail: 'is required' },
    { pointer: '/payload', detail: 'is odd' },
    { pointer: '/payloads', detail: 'is another field' },
    { pointer: '/name', detail: 'is taken' },
    { pointer: '/name', detail: 'is long' },
  ];

  it('are found by the pointer of their field', () => {
    expect(errorsUnder(errors, '/payload')).toEqual([
      { pointer: '/url', detail: 'is required' },
      { pointer: '', detail: 'is odd' },
    ]);
    expect(errorAt(errors, '/name')).toBe('is taken; is long');
    expect(errorAt(errors, '/none')).toBeUndefined();
  });

  it('of fields that a form does not show are left', () => {
    expect(otherErrors(errors, ['/payload', '/name'])).toEqual([
      { pointer: '/payloads', detail: 'is another field' },
    ]);
  });

  it('a payload is an object', () => {
    expect([undefined, null, 'text', [1], { a: 1 }].map(objectOf)).toEqual([
      {},
      {},
      {},
      {},
      { a: 1 },
    ]);
  });
});

describe('a retry policy in words', () => {
  it.each([
    [{}, 'One attempt, no retries.'],
    [{ maxAttempts: 1 }, 'One attempt, no retries.'],
    [{ maxAttempts: 4 }, '4 attempts; delays 1 s, 2 s, 4 s.'],
    [{ maxAttempts: 4, maxIntervalSeconds: 3 }, '4 attempts; delays 1 s, 2 s, 3 s.'],
    [
      { maxAttempts: 9, intervalsSeconds: [5, 60] },
      '9 attempts; delays 5 s, 1 min, 1 min, 1 min, 1 min ….',
    ],
    [
      { maxAttempts: 2, initialIntervalSeconds: 90, jitter: 0.1 },
      '2 attempts; delays 1 min 30 s, each up to 10 % longer.',
    ],
  ])('%j', (policy, words) => {
    expect(describeRetries(policy)).toBe(words);
  });

  it('of a type does not shorten delays that a job lists', () => {
    const ofType = { maxAttempts: 3, maxIntervalSeconds: 60 };
    const listed = { maxAttempts: 4, intervalsSeconds: [60, 300, 3_600] };
    expect(describeRetries(withDefaults(ofType, listed))).toBe(
      '4 attempts; delays 1 min, 5 min, 1 h.',
    );
    expect(describeRetries(withDefaults(ofType, { ...listed, maxIntervalSeconds: 300 }))).toBe(
      '4 attempts; delays 1 min, 5 min, 5 min.',
    );
    expect(describeRetries(withDefaults(ofType, {}))).toBe('3 attempts; delays 1 s, 2 s.');
  });
});

test.each([
  ['', ''],
  ['-', ''],
  [12, 12],
  // With a digit to come.
  ['1.', 1],
  // A number that has too many digits is sent and refused; without it there would be no limit.
  ['12345678901234567890', 1.2345678901234567e19],
])('an input with %j has the number %j', (typed, number) => {
  expect(typedNumber(typed)).toBe(number);
});
