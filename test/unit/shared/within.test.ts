import { getEventListeners } from 'node:events';
import { expect, test } from '@jest/globals';
import { orAborted, within } from '../../../platform/within.ts';

const never = new Promise<string>(() => undefined);

const timers = () =>
  process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;

test('what is in time is returned, and leaves no timer', async () => {
  const before = timers();
  expect(await within(60_000, Promise.resolve('done'))).toBe('done');
  await expect(within(60_000, Promise.reject(new Error('failed')))).rejects.toThrow('failed');
  expect(timers()).toBe(before);
});

test('what is late is replaced', async () => {
  expect(await within(1, never)).toBeUndefined();
  expect(await within(1, never, () => 'late')).toBe('late');
  const fail = () => {
    throw new Error('too late');
  };
  await expect(within(1, never, fail)).rejects.toThrow('too late');
});

test('an abort ends the wait with its reason; the signal keeps no listener of a wait', async () => {
  const ending = new AbortController();
  const { signal } = ending;
  expect(await orAborted(signal, Promise.resolve('done'))).toBe('done');
  await expect(orAborted(signal, Promise.reject(new Error('failed')))).rejects.toThrow('failed');
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);

  const waiting = orAborted(signal, never);
  ending.abort(new Error('stopped'));
  await expect(waiting).rejects.toThrow('stopped');
  const failing = Promise.reject(new Error('failed'));
  await expect(orAborted(signal, failing)).rejects.toThrow('stopped');
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});
