import { Registry } from '@prometheus-io/client';
import { expect, test } from '@jest/globals';
import { askWithin } from '../../../platform/metrics/askWithin.ts';
import {
  installationGauges,
  type InstallationState,
} from '../../../platform/metrics/installationGauges.ts';
import { eventually } from '../../support/eventually.ts';

test('a scrape waits for the database only so long, and asks one question at a time', async () => {
  let asked = 0;
  const { promise, resolve: answer } = Promise.withResolvers<number>();
  const ask = askWithin(10, () => {
    asked += 1;
    return promise;
  });
  expect(await Promise.all([ask(), ask()])).toEqual([undefined, undefined]);
  expect(await ask()).toBeUndefined();
  expect(asked).toBe(1);
  const last = ask();
  answer(7);
  expect(await last).toBe(7);
  const failing = askWithin<number>(10_000, () => Promise.reject(new Error('no database')));
  expect(await failing()).toBeUndefined();
});

test('the values of the installation get older while the database does not answer', async () => {
  const registry = new Registry();
  const setRead = installationGauges([registry]);
  const ageIn = async () =>
    /^holdfast_state_age_seconds (.+)$/m.exec(await registry.metrics())?.[1] ?? 'none';
  // 0 would say that all is well.
  expect(await ageIn()).toBe('none');
  const state = { ageSeconds: 5, jobsQueued: 2 } as InstallationState;
  setRead(() => Promise.resolve(state));
  expect(await ageIn()).toBe('5');
  setRead(() => Promise.reject(new Error('away')));
  await eventually(ageIn, (age) => Number(age) > 5);
  expect(await registry.metrics()).toContain('holdfast_jobs_queued 2');
});
