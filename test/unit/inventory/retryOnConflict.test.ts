import { expect, test } from '@jest/globals';
import { retryOnConflict } from '../../../services/inventory/retryOnConflict.ts';

const failure = (code: string) => Object.assign(new Error(code), { code });

/** An attempt that fails with each of these errors once, then succeeds. */
const failing = (codes: string[]) => () => {
  const code = codes.shift();
  return code === undefined ? Promise.resolve('done') : Promise.reject(failure(code));
};

test('a change is tried again after a deadlock, a violated constraint and a busy lock', async () => {
  expect(await retryOnConflict(failing(['40P01', '23505', '55P03', '55P03']))).toBe('done');
});

test('a change that always conflicts is refused', async () => {
  const always = () => Promise.reject(failure('40P01'));
  await expect(retryOnConflict(always)).rejects.toMatchObject({ code: 'conflict' });
});

test('a change whose locks stay busy says when to try again', async () => {
  let attempts = 0;
  const always = () => {
    attempts++;
    return Promise.reject(failure('55P03'));
  };
  await expect(retryOnConflict(always, 50)).rejects.toMatchObject({
    code: 'unavailable',
    extra: { retryAfterSeconds: 2 },
  });
  expect(attempts).toBeGreaterThan(1);
});

test('only the last attempt, after which no other follows, may wait longer', async () => {
  const attempts: boolean[] = [];
  const always = (isLast: boolean) => {
    attempts.push(isLast);
    return Promise.reject(failure('55P03'));
  };
  await expect(retryOnConflict(always, 50)).rejects.toMatchObject({ code: 'unavailable' });
  expect(attempts.slice(0, 2)).toEqual([false, false]);
  expect(attempts.filter(Boolean)).toHaveLength(1);
  expect(attempts.at(-1)).toBe(true);
});

test('other errors are not tried again', async () => {
  await expect(retryOnConflict(failing(['57014']))).rejects.toMatchObject({ code: '57014' });
});
