import { expect, test } from '@jest/globals';
import { systemCaller } from '../../../domain/shared/caller.ts';
import { createConcurrencyLimit } from '../../../services/backups/concurrencyLimit.ts';

function steps() {
  const limit = createConcurrencyLimit();
  const started: string[] = [];
  const ends = new Map<string, () => void>();
  return {
    started,
    run: (tenantId: string, name: string, signal = new AbortController().signal) =>
      limit({ signal, caller: systemCaller(tenantId, 'test') }, () => {
        started.push(name);
        return new Promise<void>((resolve) => ends.set(name, resolve));
      }),
    async end(name: string) {
      ends.get(name)?.();
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

test('heavy steps of one tenant leave one to another tenant, and run in order', async () => {
  const { run, started, end } = steps();
  for (const name of ['a1', 'a2', 'a3']) void run('a', name);
  void run('b', 'b1');
  await end('');
  expect(started).toEqual(['a1', 'b1']);
  await end('b1');
  expect(started).toEqual(['a1', 'b1']);
  await end('a1');
  expect(started).toEqual(['a1', 'b1', 'a2']);
  await end('a2');
  expect(started).toEqual(['a1', 'b1', 'a2', 'a3']);
});

test('those of the platform take what is free', async () => {
  const { run, started, end } = steps();
  for (const name of ['p1', 'p2', 'p3']) void run('platform', name);
  await end('');
  expect(started).toEqual(['p1', 'p2']);
});

test('a step that waits ends with its signal, and too many are refused', async () => {
  const { run, started, end } = steps();
  void run('a', 'a1');
  const stop = new AbortController();
  const waiting = run('a', 'a2', stop.signal);
  stop.abort(new Error('cancelled'));
  await expect(waiting).rejects.toThrow('cancelled');
  for (let n = 0; n < 20; n++) void run('a', `w${n}`);
  await expect(run('a', 'one too many')).rejects.toMatchObject({ code: 'busy' });
  void run('b', 'b1');
  await end('');
  expect(started).toEqual(['a1', 'b1']);
});
