import { setImmediate } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { createPause } from '../../../platform/turns.ts';

/** Occupies the process for longer than a turn. */
function compute(): void {
  const startedAt = performance.now();
  while (performance.now() - startedAt < 20);
}

test('a long computation lets other work run between its parts', async () => {
  const pause = createPause();
  const order: string[] = [];
  void setImmediate().then(() => order.push('other work'));
  for (const part of ['first', 'second']) {
    compute();
    await pause();
    order.push(part);
  }
  expect(order).toEqual(['other work', 'first', 'second']);
});

test('it ends at a pause when its signal is aborted', async () => {
  const leaving = new AbortController();
  const pause = createPause(leaving.signal);
  await pause();
  compute();
  leaving.abort(new Error('left'));
  await expect(pause()).rejects.toThrow('left');
});

test('of several computations one continues at a time, with other work in between', async () => {
  const order: string[] = [];
  let finished = false;
  const others = (async () => {
    while (!finished) {
      await setImmediate();
      order.push('other work');
    }
  })();
  const run = async (name: string) => {
    const pause = createPause();
    for (let part = 0; part < 3; part++) {
      compute();
      await pause();
      order.push(name);
    }
  };
  await Promise.all([run('one'), run('two'), run('three')]);
  finished = true;
  await others;
  const computations = order.flatMap((entry, at) => (entry === 'other work' ? [] : [at]));
  expect(computations).toHaveLength(9);
  expect(computations.filter((at, n) => at - (computations[n - 1] ?? -2) < 2)).toEqual([]);
});
