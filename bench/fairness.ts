import { setTimeout as sleep } from 'node:timers/promises';
import { startBenchEnvironment, startProduct } from './fixture.ts';
import { createTenantApi, startEndpoint } from './fairness/api.ts';
import { chosenLoads, prepareLoad, type Load } from './fairness/loads.ts';
import { MEASURES, prepareQuietTenant, type Measure, type Samples } from './fairness/quiet.ts';
import { ms, quantile, type BenchResult } from './report.ts';

/** `HOLDFAST_BENCH_ROUNDS` makes a quick run, to see that everything works. */
const ROUNDS = Number(process.env.HOLDFAST_BENCH_ROUNDS ?? 300);
const WARM_UP = Math.min(10, ROUNDS);

/** No load is measured for longer than this. */
const MAX_MEASURE_MS = 30_000;
const PAUSE_MS = 2_000;

/** The p99 under load may be this many times the one without. */
const MAX_RATIO = 3;

/**
 * The p99 of what a quiet tenant does, without and with another tenant that does its worst, on one
 * process with the defaults. `HOLDFAST_BENCH_LOADS`, such as `webhooks,schedules`, chooses loads.
 */
export async function bench(): Promise<BenchResult[]> {
  const loads = chosenLoads(process.env.HOLDFAST_BENCH_LOADS);
  const environment = await startBenchEnvironment();
  const endpoint = await startEndpoint();
  const product = await startProduct(environment);
  const base = `http://127.0.0.1:${product.ready}`;
  const quietApi = createTenantApi(base, 'quiet');
  const noisyApi = createTenantApi(base, 'noisy');
  try {
    const tenantNames = ['quiet', 'noisy'];
    const platform = createTenantApi(base, 'platform');
    for (const name of tenantNames)
      await platform.send('POST', '/api/inventory/tenants', { id: name, name });
    await platform.close();
    const quiet = await prepareQuietTenant(quietApi, endpoint);
    const measure = (rounds: number) => quiet.measure(rounds, MAX_MEASURE_MS);
    await measure(WARM_UP);
    const alone = await measure(ROUNDS);
    const results: BenchResult[] = [];
    for (const name of loads) {
      const load = await prepareLoad(name, noisyApi, endpoint);
      results.push(...compare(load, alone, await underLoad(load, () => measure(ROUNDS))));
    }
    return results;
  } finally {
    await Promise.all([quietApi.close(), noisyApi.close()]);
    await product.stop();
    await endpoint.stop();
    await environment.stop();
  }
}

async function underLoad(load: Load, measure: () => Promise<Samples>): Promise<Samples> {
  const stop = await load.start();
  try {
    return await measure();
  } finally {
    await stop();
    await sleep(PAUSE_MS);
  }
}

const compare = ({ name }: Load, alone: Samples, beside: Samples): BenchResult[] =>
  MEASURES.map((measure: Measure) => {
    const [before, with99] = [quantile(alone[measure], 0.99), quantile(beside[measure], 0.99)];
    return {
      measure: `${measure} of a quiet tenant beside ${name}, p99`,
      value: ms(with99),
      reference: `${ms(before)} alone`,
      ratio: (with99 / before).toFixed(2),
      target: `≤ ${MAX_RATIO}`,
      met: with99 / before <= MAX_RATIO,
    };
  });
