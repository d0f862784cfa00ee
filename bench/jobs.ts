import pg from 'pg';
import { Agent, request } from 'undici';
import { startBenchEnvironment, startProgram } from './fixture.ts';
import { load, offer, type LoadResult } from './load.ts';
import { median, ms, perSecond, quantile, type BenchResult } from './report.ts';

const ROUNDS = 5;
const CONCURRENT = { concurrency: 50, total: 1_000 };
const SEQUENTIAL = { concurrency: 1, total: 200 };
const WARM_UP = { concurrency: 50, total: 300 };
const BURST = { concurrency: 50, total: 50 };
const BURSTS = 10;
const OFFERED = { perSecond: 40, total: 400 };

type Samples = { rates: number[]; singles: number[] };

/** Milliseconds until the response to POST: at a fixed rate, and in bursts. */
type Answers = { offered: number[]; bursts: number[] };

/** Jobs over HTTP compared with the bare SDK, and responses to POST compared with a commit. */
export async function bench(): Promise<BenchResult[]> {
  const environment = await startBenchEnvironment();
  const env = {
    TEMPORAL_ADDRESS: environment.temporalAddress,
    DATABASE_URL: environment.databaseUrl,
  };
  const ours: Samples = { rates: [], singles: [] };
  const theirs: Samples = { rates: [], singles: [] };
  const answers: Answers = { offered: [], bursts: [] };
  const commits: number[] = [];
  const alone: number[] = [];
  try {
    // Alternating on the same servers, so that other load on the machine affects both equally.
    for (let round = 0; round < ROUNDS; round++) {
      await measureProduct(env, ours, answers);
      await measureBare(env, theirs);
      commits.push(...(await commitTimes(environment.databaseUrl)));
    }
    const withoutTemporal = {
      TEMPORAL_ADDRESS: '127.0.0.1:1',
      DATABASE_URL: await environment.database('alone'),
    };
    alone.push(...(await responseTimesWithoutWorker(withoutTemporal)));
  } finally {
    await environment.stop();
  }
  return [...comparisons(ours, theirs), ...responseTimes(answers, commits, alone)];
}

const startProduct = (env: Record<string, string>, ready: RegExp) =>
  startProgram(
    ['processes/main.ts'],
    {
      HOLDFAST_PORT: '0',
      HOLDFAST_TRUSTED_GATEWAYS: '127.0.0.0/8',
      HOLDFAST_LOG_LEVEL: 'info',
      ...env,
    },
    ready,
  );

const poster =
  (agent: Agent, port: string) =>
  (expectedStatus: string, prefer: Record<string, string> = {}) =>
  async (n: number) => {
    const answer = await request(`http://127.0.0.1:${port}/api/jobs`, {
      method: 'POST',
      dispatcher: agent,
      body: JSON.stringify({ type: 'core.echo', payload: { n } }),
      headers: {
        'content-type': 'application/json',
        'x-service-actor-id': 'bench',
        'x-service-role-ids': 'operator',
        ...prefer,
      },
    });
    const body = (await answer.body.json()) as { status: string };
    if (answer.statusCode !== 201 || body.status !== expectedStatus)
      throw new Error(`${answer.statusCode} ${JSON.stringify(body)}`);
  };

async function measureProduct(
  env: Record<string, string>,
  seen: Samples,
  answers: Answers,
): Promise<void> {
  const product = await startProduct(env, /"port":(\d+)[^]*the worker is polling/);
  const agent = new Agent({ connections: CONCURRENT.concurrency });
  const post = poster(agent, product.ready);
  const toDone = post('succeeded', { prefer: 'wait=60' });
  await load(WARM_UP, toDone);
  seen.rates.push((await load(CONCURRENT, toDone)).perSecond);
  await waitUntilDrained(env.DATABASE_URL ?? '');
  seen.singles.push(...(await load(SEQUENTIAL, toDone)).durationsMs);
  answers.offered.push(...(await offer(OFFERED, post('queued'))).durationsMs);
  await waitUntilDrained(env.DATABASE_URL ?? '');
  // In bursts: the first jobs run while later requests are handled.
  for (let burst = 0; burst < BURSTS; burst++) {
    answers.bursts.push(...(await load(BURST, post('queued'))).durationsMs);
    await waitUntilDrained(env.DATABASE_URL ?? '');
  }
  await agent.close();
  await product.stop();
}

/** Bursts of requests to an API without workers and Temporal. */
async function responseTimesWithoutWorker(env: Record<string, string>): Promise<number[]> {
  const product = await startProduct({ ...env, HOLDFAST_ROLE: 'api' }, /"port":(\d+).*listening/);
  const agent = new Agent({ connections: CONCURRENT.concurrency });
  const post = poster(agent, product.ready)('queued');
  await load(WARM_UP, post);
  const tookMs: number[] = [];
  for (let burst = 0; burst < BURSTS * ROUNDS; burst++)
    tookMs.push(...(await load(BURST, post)).durationsMs);
  await agent.close();
  await product.stop();
  return tookMs;
}

async function measureBare(env: Record<string, string>, seen: Samples): Promise<void> {
  const bare = await startProgram(['bench/jobs/bare.ts'], env, /bare on (\d+)/);
  const run = async ({ concurrency, total }: typeof CONCURRENT) =>
    (await (
      await request(`http://127.0.0.1:${bare.ready}/?concurrency=${concurrency}&total=${total}`, {
        headersTimeout: 0,
      })
    ).body.json()) as LoadResult;
  await run(WARM_UP);
  seen.rates.push((await run(CONCURRENT)).perSecond);
  seen.singles.push(...(await run(SEQUENTIAL)).durationsMs);
  await bare.stop();
}

function comparisons(ours: Samples, theirs: Samples): BenchResult[] {
  const [rate, bareRate] = [median(ours.rates), median(theirs.rates)];
  const [single, bareSingle] = [median(ours.singles), median(theirs.singles)];
  return [
    {
      measure: 'jobs, POST to completion, 50 concurrently',
      value: perSecond(rate),
      reference: `${perSecond(bareRate)} bare SDK`,
      ratio: (rate / bareRate).toFixed(2),
      target: '≥ 0.9',
      met: rate / bareRate >= 0.9,
    },
    {
      measure: 'jobs, POST to completion, one at a time, p50',
      value: ms(single),
      reference: `${ms(bareSingle)} bare SDK`,
      ratio: (single / bareSingle).toFixed(2),
      target: '≤ 1.3',
      met: single / bareSingle <= 1.3,
    },
  ];
}

function responseTimes(answers: Answers, commits: number[], alone: number[]): BenchResult[] {
  const p99 = (values: number[]) => quantile(values, 0.99);
  const burst = (measure: string, values: number[]): BenchResult => ({
    measure,
    value: ms(p99(values)),
    reference: `${ms(p99(commits))} PostgreSQL commit`,
    ratio: `+${ms(p99(values) - p99(commits))}`,
    target: '',
    met: true,
  });
  const { perSecond: rate } = OFFERED;
  return [
    {
      measure: `response to POST /api/jobs at an offered load of ${rate} jobs/s, p99`,
      value: ms(p99(answers.offered)),
      reference: `p50 ${ms(median(answers.offered))}`,
      ratio: '',
      target: '≤ 40 ms',
      met: p99(answers.offered) <= 40,
    },
    burst('response to POST /api/jobs, 50 concurrently, p99', answers.bursts),
    burst('the same without workers and Temporal', alone),
  ];
}

/** INSERT and COMMIT, 50 concurrently on 20 connections, like the pool of the product. */
async function commitTimes(url: string): Promise<number[]> {
  const pool = new pg.Pool({ connectionString: url, max: 20 });
  await pool.query('CREATE TABLE IF NOT EXISTS bench_commit (id bigserial PRIMARY KEY, body json)');
  const insert = async (n: number) => {
    const client = await pool.connect();
    await client.query('BEGIN');
    await client.query('INSERT INTO bench_commit (body) VALUES ($1)', [JSON.stringify({ n })]);
    await client.query('COMMIT');
    client.release();
  };
  await load(WARM_UP, insert);
  const tookMs: number[] = [];
  for (let burst = 0; burst < BURSTS; burst++)
    tookMs.push(...(await load(BURST, insert)).durationsMs);
  await pool.end();
  return tookMs;
}

async function waitUntilDrained(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  for (let left = 1; left > 0;) {
    const { rows } = await client.query<{ left: number }>(
      `SELECT count(*)::int AS left FROM jobs WHERE status IN ('queued', 'running')`,
    );
    left = rows[0]?.left ?? 0;
    if (left > 0) await new Promise((resolve) => setTimeout(resolve, 100));
  }
  await client.end();
}
