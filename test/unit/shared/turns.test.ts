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
  setImmediate(() => order.push('other work'));
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
