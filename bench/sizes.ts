import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { ROOT, startBenchEnvironment, startProduct } from './fixture.ts';
import { openApi } from './inventory/api.ts';
import { ms, quantile, type BenchResult } from './report.ts';
import { drawChart, type Series } from './sizes/chart.ts';
import { fill, prepare } from './sizes/fill.ts';
import { createOperations, type Operation } from './sizes/operations.ts';

/** `HOLDFAST_BENCH_SIZES=10000,100000` makes it shorter; every size is a run of its own. */
const SIZES = (process.env.HOLDFAST_BENCH_SIZES ?? '10000,100000,1000000,5000000')
  .split(',')
  .map(Number);
const REQUESTS = 40;
const WARM_UP = 10;
/** What a hundred times as many records may cost: the logarithm grows by half. */
const MAX_GROWTH = 2;

/**
 * The p50 of operations with more and more addresses, prefixes, jobs and closed approval requests, as
 * many of each. Prints a table of all sizes and writes `docs/sizes.svg`.
 */
export async function bench(): Promise<BenchResult[]> {
  const environment = await startBenchEnvironment();
  const client = new pg.Client({ connectionString: environment.databaseUrl });
  await client.connect();
  const product = await startProduct(environment);
  const { api, close } = openApi(product.ready, 1);
  try {
    const ids = await prepare(api, client);
    const operations = createOperations(api, client, ids);
    const series: Series[] = operations.map(({ name }) => ({ name, values: [] }));
    let present = 0;
    for (const size of SIZES) {
      await fill(client, ids, present, size);
      present = size;
      for (const [i, operation] of operations.entries())
        series[i]?.values.push(await measure(operation, size));
      process.stderr.write(`${size} of each measured\n`);
    }
    process.stdout.write(`\n${sizesTable(series)}\n`);
    await writeFile(path.join(ROOT, 'docs/sizes.svg'), drawChart(SIZES, series));
    return series.map(resultOf);
  } finally {
    await close();
    await product.stop();
    await client.end();
    await environment.stop();
  }
}

async function measure({ prepare: prepareOne, run }: Operation, size: number): Promise<number> {
  const durationsMs: number[] = [];
  for (let n = 0; n < REQUESTS + WARM_UP; n++) {
    await prepareOne?.();
    const startedAt = performance.now();
    await run(size, n);
    if (n >= WARM_UP) durationsMs.push(performance.now() - startedAt);
  }
  return quantile(durationsMs, 0.5);
}

/** A Markdown table with a column for each size. */
function sizesTable(series: readonly Series[]): string {
  const lines = [
    ['p50 with as many records of each kind', ...SIZES.map((size) => size.toLocaleString('en'))],
    Array<string>(SIZES.length + 1).fill('---'),
    ...series.map(({ name, values }) => [name, ...values.map(ms)]),
  ];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function resultOf({ name, values }: Series): BenchResult {
  const [first = Number.NaN, last = Number.NaN] = [values[0], values.at(-1)];
  return {
    measure: `${name}, with ${SIZES.at(-1) ?? 0} records of each kind compared with ${SIZES[0] ?? 0}, p50`,
    value: ms(last),
    reference: ms(first),
    ratio: (last / first).toFixed(2),
    target: `≤ ${MAX_GROWTH} ×`,
    met: last / first <= MAX_GROWTH,
  };
}
