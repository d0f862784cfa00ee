import { expect, test } from '@jest/globals';
import { ConcurrentChange, retryChanged } from '../../../services/schedules/retryChanged.ts';

const failing = (times: number, error: Error) => {
  let attempts = 0;
  return () => (++attempts <= times ? Promise.reject(error) : Promise.resolve(attempts));
};

test('a change is tried again while the schedule changes, and no more than five times', async () => {
  expect(await retryChanged(failing(4, new ConcurrentChange()))).toBe(5);
  await expect(retryChanged(failing(5, new ConcurrentChange()))).rejects.toMatchObject({
    code: 'unavailable',
    extra: { retryAfterSeconds: 1 },
  });
});

test('another error is not tried again', async () => {
  await expect(retryChanged(failing(1, new Error('other')))).rejects.toThrow('other');
});
