import { expect, test } from '@jest/globals';
import { tenantKey } from '../../../platform/connectionUser.ts';
import { createImportPace } from '../../../services/inventory/importPace.ts';

/** Writes three batches of `ms` each. Returns their sizes, and the rests. */
async function batches(othersAreActive: (key: string) => boolean, ms: number) {
  let now = 0;
  const sizes: number[] = [];
  const rests: number[] = [];
  const pace = createImportPace({
    now: () => now,
    rest: (rest) => Promise.resolve(rests.push(rest)),
    activity: { othersAreActive },
  });
  for (let n = 0; n < 3; n++)
    await pace.step('noisy', new AbortController().signal, (maxRows) => {
      sizes.push(maxRows);
      now += ms;
      return Promise.resolve();
    });
  return { sizes, rests };
}

test('an import alone writes large batches without a rest', async () => {
  expect(await batches(() => false, 300)).toEqual({ sizes: [500, 500, 500], rests: [] });
});

test('while other tenants are active, it writes small batches and rests as long as each took', async () => {
  const isOfNoisy = (key: string) => key === tenantKey('noisy');
  expect(await batches(isOfNoisy, 40)).toEqual({ sizes: [50, 50, 50], rests: [40, 40, 40] });
});

test('a rest is bounded', async () => {
  expect((await batches(() => true, 60_000)).rests).toEqual([500, 500, 500]);
});

test('a rest ends with its signal', async () => {
  const pace = createImportPace({ activity: { othersAreActive: () => true } });
  const stopping = new AbortController();
  const write = () => {
    stopping.abort(new Error('stopping'));
    return Promise.resolve();
  };
  await expect(pace.step('noisy', stopping.signal, write)).rejects.toThrow('stopping');
});
