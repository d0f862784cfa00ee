import pg from 'pg';
import { Agent, request } from 'undici';
import { startBenchEnvironment, startProgram } from './fixture.ts';
import { load, type LoadResult } from './load.ts';
import { ms, perSecond, quantile, type BenchResult } from './report.ts';

const ROUNDS = 5;
const CONCURRENT = { concurrency: 50, total: 1_000 };
const SEQUENTIAL = { concurrency: 1, total: 200 };
const WARM_UP = { concurrency: 50, total: 300 };
const BURST = { concurrency: 50, total: 50 };
const BURSTS = 10;

const median = (values: number[]) => quantile(values, 0.5);

type Samples = { rates: number[]; singles: number[]; answers: number[] };

/** Jobs over HTTP compared with the bare SDK, and responses to POST compared with a commit. */
export async function bench(): Promise<BenchResult[]> {
  const environment = await startBenchEnvironment();
  const env = {
    TEMPORAL_ADDRESS: environment.temporalAddress,
    DATABASE_URL: environment.databaseUrl,
  };
  const ours: Samples = { rates: [], singles: [], answers: [] };
  const theirs: Samples = { rates: [], singles: [], answers: [] };
  const commits: number[] = [];
  const alone: number[] = [];
  try {
    // Alternating on the same servers, so that other load on the machine affects both equally.
    for (let round = 0; round < ROUNDS; round++) {
      await measureProduct(env, ours);
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
  return results(ours, theirs, commits, alone);
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

async function measureProduct(env: Record<string, string>, seen: Samples): Promise<void> {
  const product = await startProduct(env, /"port":(\d+)[^]*the worker is polling/);
  const agent = new Agent({ connections: CONCURRENT.concurrency });
  const post = poster(agent, product.ready);
  const toDone = post('succeeded', { prefer: 'wait=60' });
  await load(WARM_UP, toDone);
  seen.rates.push((await load(CONCURRENT, toDone)).perSecond);
  await waitUntilDrained(env.DATABASE_URL ?? '');
  seen.singles.push(...(await load(SEQUENTIAL, toDone)).durationsMs);
  // In bursts: the first jobs run while later requests are handled.
  for (let burst = 0; burst < BURSTS; burst++) {
    seen.answers.push(...(await load(BURST, post('queued'))).durationsMs);
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

function results(
  ours: Samples,
  theirs: Samples,
  commits: number[],
  alone: number[],
): BenchResult[] {
  const [rate, bareRate] = [median(ours.rates), median(theirs.rates)];
  const [single, bareSingle] = [median(ours.singles), median(theirs.singles)];
  const [answer, commit] = [quantile(ours.answers, 0.99), quantile(commits, 0.99)];
  return [
    {
      measure: 'jobs, POST to completion, 50 concurrently',
      value: perSecond(rate),
      reference: `${perSecond(bareRate)} bare SDK`,
      ratio: (rate / bareRate).toFixed(2),
      target: '≥ 0.8',
      met: rate / bareRate >= 0.8,
    },
    {
      measure: 'jobs, POST to completion, one at a time, p50',
      value: ms(single),
      reference: `${ms(bareSingle)} bare SDK`,
      ratio: (single / bareSingle).toFixed(2),
      target: '≤ 1.5',
      met: single / bareSingle <= 1.5,
    },
    {
      measure: 'response to POST /api/jobs, 50 concurrently, p99',
      value: ms(answer),
      reference: `${ms(commit)} PostgreSQL commit`,
      ratio: `+${ms(answer - commit)}`,
      target: '≤ +50 ms',
      met: answer - commit <= 50,
    },
    {
      measure: 'the same without workers and Temporal',
      value: ms(quantile(alone, 0.99)),
      reference: `${ms(commit)} PostgreSQL commit`,
      ratio: `+${ms(quantile(alone, 0.99) - commit)}`,
      target: '',
      met: true,
    },
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
