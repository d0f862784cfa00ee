import { describe, expect, test } from '@jest/globals';
import { ActivityCancellationDetails, ApplicationFailure } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { MAX_UNEXPECTED_ATTEMPTS, sanitizeErrors } from '../../../activities/sanitizeErrors.ts';
import { attemptSignal, createJobActivities } from '../../../activities/jobs.ts';
import { OTHER_WORKER_NEEDED } from '../../../domain/dispatch/tasks.ts';
import { AppError } from '../../../domain/shared/errors.ts';
import { createLog } from '../../../platform/log.ts';
import { StoreError } from '../../../platform/stores/store.ts';
import { AttemptFailed, WorkerStopping } from '../../../services/jobs/lifecycle.ts';

const log = createLog('silent', false);

/** The failure of an activity whose body throws `error` in the given attempt. */
async function failureOf(error: Error, attempt: number): Promise<ApplicationFailure> {
  const activity = new MockActivityEnvironment({ attempt });
  const failure: unknown = await activity
    .run(() => sanitizeErrors(log, () => Promise.reject(error)))
    .catch((thrown: unknown) => thrown);
  if (failure instanceof ApplicationFailure) return failure;
  throw new Error('not an ApplicationFailure');
}

describe('an error inside an activity', () => {
  const bug = new TypeError("cannot read 'secret-of-a-record'");

  test('is retried while it may be a hiccup', async () => {
    const failure = await failureOf(bug, MAX_UNEXPECTED_ATTEMPTS - 1);
    expect(failure).toMatchObject({ type: 'unexpected', nonRetryable: false });
  });

  test('ends the retries after the last attempt that an unexpected error gets', async () => {
    const failure = await failureOf(bug, MAX_UNEXPECTED_ATTEMPTS);
    expect(failure).toMatchObject({ type: 'unexpected', nonRetryable: true });
  });

  test('keeps its message out of Temporal', async () => {
    const failure = await failureOf(bug, 1);
    expect(failure.message).not.toContain('secret-of-a-record');
    expect(failure.cause).toBeUndefined();
  });

  test.each([
    ['a refused connection', Object.assign(new Error('x'), { code: 'ECONNREFUSED' })],
    ['a stopping server', Object.assign(new Error('x'), { nativeError: { code: '57P01' } })],
    ['a lost connection', new Error('Connection terminated unexpectedly')],
    ['a question that took too long', new AppError('unavailable', 'It takes too long.')],
    ['a store that is away', new StoreError('store_unavailable', 'Away.', true)],
    ['a queue that is full', new AppError('queue_full', 'Too many jobs wait.')],
  ])('is retried without limit after %s', async (_what, outage) => {
    const failure = await failureOf(outage, 1_000);
    expect(failure).toMatchObject({ type: 'unavailable', nonRetryable: false });
  });

  test('passes failures that the activity made itself', async () => {
    const own = ApplicationFailure.nonRetryable('x', 'no_slot');
    expect(await failureOf(own, 1)).toBe(own);
  });
});

describe('an activity that is cancelled', () => {
  const reasonOf = async (details: Partial<ActivityCancellationDetails>): Promise<unknown> => {
    const activity = new MockActivityEnvironment();
    const signal = await activity.run(() => Promise.resolve(attemptSignal()));
    activity.cancel('CANCELLED', new ActivityCancellationDetails(details));
    return (signal as AbortSignal).reason;
  };

  test.each([
    ['workerShutdown', ''],
    ['paused', 'its activity was paused in Temporal'],
    ['reset', 'its activity was reset in Temporal'],
  ])('because of %s is interrupted', async (cause, message) => {
    const reason = await reasonOf({ [cause]: true });
    expect(reason).toBeInstanceOf(WorkerStopping);
    expect(reason).toMatchObject({ message });
  });

  test.each(['cancelRequested', 'notFound', 'timedOut'])('because of %s is not', async (cause) => {
    expect(await reasonOf({ [cause]: true })).not.toBeInstanceOf(WorkerStopping);
  });
});

test('a job with several steps that finds no slot goes on in a new run from time to time', async () => {
  const start = () => Promise.reject(new AttemptFailed('no_slot', 6_000));
  const { startMultiStepJob } = createJobActivities({ multiStepJobs: { start }, log } as never);
  const failureIn = (attempt: number): Promise<unknown> =>
    new MockActivityEnvironment({ attempt })
      .run(startMultiStepJob, 'job_1')
      .catch((failure: unknown) => failure);
  expect(await failureIn(49)).toMatchObject({ type: 'no_slot', nextRetryDelay: 6_000 });
  expect(await failureIn(50)).toMatchObject({ type: OTHER_WORKER_NEEDED, details: [6_000] });
});
