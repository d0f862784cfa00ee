import { expect, test } from '@jest/globals';
import { createLog } from '../../../platform/log.ts';
import { createLoop } from '../../../platform/loop.ts';
import { eventually } from '../../support/eventually.ts';

const log = createLog('silent', false);

test('a round follows immediately while there is more work, and later after a failure', async () => {
  let rounds = 0;
  const loop = createLoop({ name: 'test', everyMs: 5, log }, () => {
    rounds += 1;
    if (rounds === 3) return Promise.reject(new Error('a bad round'));
    return Promise.resolve(rounds < 3);
  });
  loop.start();
  await eventually(
    () => rounds,
    (count) => count >= 5,
  );
  await loop.stop();
});

test('a wake starts the next round early, also during a round', async () => {
  let rounds = 0;
  let go: () => void = () => undefined;
  const loop = createLoop({ name: 'test', everyMs: 3_600_000, log }, async () => {
    rounds += 1;
    if (rounds === 2) await new Promise<void>((resolve) => (go = resolve));
    return false;
  });
  loop.start();
  await eventually(
    () => rounds,
    (count) => count === 1,
  );
  loop.wake();
  await eventually(
    () => rounds,
    (count) => count === 2,
  );
  loop.wake();
  go();
  await eventually(
    () => rounds,
    (count) => count === 3,
  );
  await loop.stop();
  const after = rounds;
  loop.wake();
  expect(rounds).toBe(after);
});

test('frequent wakes do not shorten the minimum interval', async () => {
  const began: number[] = [];
  const loop = createLoop({ name: 'test', everyMs: 3_600_000, minIntervalMs: 50, log }, () => {
    began.push(performance.now());
    return Promise.resolve(false);
  });
  loop.start();
  const waking = setInterval(loop.wake, 1);
  await eventually(
    () => began.length,
    (count) => count >= 5,
  );
  clearInterval(waking);
  await loop.stop();
  const rests = began.slice(1).map((at, i) => at - (began[i] ?? 0));
  expect(Math.min(...rests)).toBeGreaterThanOrEqual(45);
  expect(Math.max(...rests)).toBeLessThan(1_000);
});

test('the minimum interval can depend on what a round has found', async () => {
  const began: number[] = [];
  const options = { name: 'test', everyMs: 3_600_000, log };
  const minIntervalMs = () => (began.length === 2 ? 200 : 0);
  const loop = createLoop({ ...options, minIntervalMs }, () => {
    began.push(performance.now());
    return Promise.resolve(false);
  });
  loop.start();
  const waking = setInterval(loop.wake, 1);
  await eventually(
    () => began.length,
    (count) => count >= 3,
  );
  clearInterval(waking);
  await loop.stop();
  const [first = 0, second = 0, third = 0] = began;
  expect(third - second).toBeGreaterThanOrEqual(190);
  expect(second - first).toBeLessThan(190);
});
