import { Registry } from '@prometheus-io/client';
import { expect, test } from '@jest/globals';
import { askWithin } from '../../../platform/metrics/askWithin.ts';
import { installationGauges } from '../../../platform/metrics/installationGauges.ts';
import { createReadInstallationState } from '../../../services/operations/installationState.ts';
import { createFakeState } from '../../support/installationState.ts';
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
    Number(/^holdfast_state_age_seconds (.+)$/m.exec(await registry.metrics())?.[1]);
  // 0 would say that all is well.
  expect(await ageIn()).toBeNaN();
  const { db, goAway } = createFakeState({ ageSeconds: 5, state: { jobsQueued: 2 } });
  setRead(createReadInstallationState({ db, cacheMs: 0 }));
  const first = await ageIn();
  expect(Math.floor(first)).toBe(5);
  goAway();
  await eventually(ageIn, (age) => age > first);
  expect(await registry.metrics()).toContain('holdfast_jobs_queued 2');
});
