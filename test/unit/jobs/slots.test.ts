import { expect, test } from '@jest/globals';
import { SYSTEM_FAIRNESS_KEY } from '../../../domain/dispatch/tasks.ts';
import { JobFailure } from '../../../domain/jobs/jobType.ts';
import { AppError } from '../../../domain/shared/errors.ts';
import { busyFailure } from '../../../services/jobs/busy.ts';
import { askAgainMs } from '../../../services/jobs/slots.ts';

test.each([
  ['behind nobody', { ahead: 0, asking: 0 }, 1_000],
  ['before many that wait without a workflow', { ahead: 0, asking: 600 }, 1_000],
  ['alone behind many that do not ask', { ahead: 600, asking: 0 }, 1_000],
  ['behind many that ask', { ahead: 600, asking: 600 }, 60_000],
])('an attempt %s asks again in time for its slot', (_, queue, ms) => {
  expect(askAgainMs(queue, 0.5)).toBe(ms);
  expect(askAgainMs(queue, 0)).toBe(ms / 2);
});

test('a process that is busy fails an attempt with `busy`, which is retried', () => {
  for (const code of ['too_many_requests', 'unavailable'] as const) {
    const failure = busyFailure(new AppError(code, 'Busy.', { retryAfterSeconds: 60 }));
    expect(failure).toBeInstanceOf(JobFailure);
    expect(failure).toMatchObject({ code: 'busy', retryable: true, retryAfterMs: 60_000 });
  }
  expect(busyFailure(new AppError('not_found', 'x'))).toBeUndefined();
  expect(busyFailure(new Error('x'))).toBeUndefined();
});

test('the system is no tenant', () => {
  expect(SYSTEM_FAIRNESS_KEY).toMatch(/[^A-Za-z0-9._-]/);
  expect(SYSTEM_FAIRNESS_KEY.length).toBeLessThanOrEqual(64);
});
