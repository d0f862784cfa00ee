import pg from 'pg';
import { Agent, request } from 'undici';
import { startBed, startProgram } from './fixture.ts';
import { load, type Load } from './load.ts';
import { ms, perSecond, quantile, type Result } from './report.ts';

const ROUNDS = 5;
const AT_ONCE = { atOnce: 50, total: 1_000 };
const ONE_BY_ONE = { atOnce: 1, total: 200 };
const WARM_UP = { atOnce: 50, total: 300 };
const BURST = { atOnce: 50, total: 50 };
const BURSTS = 10;

const median = (values: number[]) => quantile(values, 0.5);

type Seen = { rates: number[]; singles: number[]; answers: number[] };

/** POST to done through HTTP against the bare SDK, and the answer time of POST against PostgreSQL's commit. */
export async function bench(): Promise<Result[]> {
  const bed = await startBed();
  const env = { TEMPORAL_ADDRESS: bed.temporalAddress, DATABASE_URL: bed.databaseUrl };
  const ours: Seen = { rates: [], singles: [], answers: [] };
  const theirs: Seen = { rates: [], singles: [], answers: [] };
  const commits: number[] = [];
  const alone: number[] = [];
  try {
    // In turns, each alone on the same servers, so that what the machine does beside falls on both.
    for (let round = 0; round < ROUNDS; round++) {
      await measureProduct(env, ours);
      await measureBare(env, theirs);
      commits.push(...(await commitTimes(bed.databaseUrl)));
    }
    const nowhere = { TEMPORAL_ADDRESS: '127.0.0.1:1', DATABASE_URL: await bed.database('alone') };
    alone.push(...(await answersAlone(nowhere)));
  } finally {
    await bed.stop();
  }
  return results(ours, theirs, commits, alone);
}

const startProduct = (env: Record<string, string>, ready: RegExp) =>
  startProgram(
    ['api/main.ts'],
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
  (wanted: string, prefer: Record<string, string> = {}) =>
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
    if (answer.statusCode !== 201 || body.status !== wanted)
      throw new Error(`${answer.statusCode} ${JSON.stringify(body)}`);
  };

async function measureProduct(env: Record<string, string>, seen: Seen): Promise<void> {
  const product = await startProduct(env, /"port":(\d+)[^]*the worker is polling/);
  const agent = new Agent({ connections: AT_ONCE.atOnce });
  const post = poster(agent, product.ready);
  const toDone = post('succeeded', { prefer: 'wait=60' });
  await load(WARM_UP, toDone);
  seen.rates.push((await load(AT_ONCE, toDone)).perSecond);
  await untilDrained(env.DATABASE_URL ?? '');
  seen.singles.push(...(await load(ONE_BY_ONE, toDone)).tookMs);
  // As a burst: what was taken before still runs while the next are answered.
  for (let burst = 0; burst < BURSTS; burst++) {
    seen.answers.push(...(await load(BURST, post('queued'))).tookMs);
    await untilDrained(env.DATABASE_URL ?? '');
  }
  await agent.close();
  await product.stop();
}

/** Bursts against an API that can only take jobs: what answering costs by itself. */
async function answersAlone(env: Record<string, string>): Promise<number[]> {
  const product = await startProduct({ ...env, HOLDFAST_ROLE: 'api' }, /"port":(\d+).*listening/);
  const agent = new Agent({ connections: AT_ONCE.atOnce });
  const post = poster(agent, product.ready)('queued');
  await load(WARM_UP, post);
  const tookMs: number[] = [];
  for (let burst = 0; burst < BURSTS * ROUNDS; burst++)
    tookMs.push(...(await load(BURST, post)).tookMs);
  await agent.close();
  await product.stop();
  return tookMs;
}

async function measureBare(env: Record<string, string>, seen: Seen): Promise<void> {
  const bare = await startProgram(['bench/jobs/bare.ts'], env, /bare on (\d+)/);
  const run = async ({ atOnce, total }: typeof AT_ONCE) =>
    (await (
      await request(`http://127.0.0.1:${bare.ready}/?atOnce=${atOnce}&total=${total}`, {
        headersTimeout: 0,
      })
    ).body.json()) as Load;
  await run(WARM_UP);
  seen.rates.push((await run(AT_ONCE)).perSecond);
  seen.singles.push(...(await run(ONE_BY_ONE)).tookMs);
  await bare.stop();
}

function results(ours: Seen, theirs: Seen, commits: number[], alone: number[]): Result[] {
  const [rate, bareRate] = [median(ours.rates), median(theirs.rates)];
  const [single, bareSingle] = [median(ours.singles), median(theirs.singles)];
  const [answer, commit] = [quantile(ours.answers, 0.99), quantile(commits, 0.99)];
  return [
    {
      measure: 'jobs, POST to done, 50 at once',
      value: perSecond(rate),
      reference: `${perSecond(bareRate)} bare SDK`,
      ratio: (rate / bareRate).toFixed(2),
      aim: '≥ 0.8',
      met: rate / bareRate >= 0.8,
    },
    {
      measure: 'jobs, POST to done, one at a time, p50',
      value: ms(single),
      reference: `${ms(bareSingle)} bare SDK`,
      ratio: (single / bareSingle).toFixed(2),
      aim: '≤ 1.5',
      met: single / bareSingle <= 1.5,
    },
    {
      measure: 'jobs, answer to POST, 50 at once, p99',
      value: ms(answer),
      reference: `${ms(commit)} PostgreSQL commit`,
      ratio: `+${ms(answer - commit)}`,
      aim: '≤ +50 ms',
      met: answer - commit <= 50,
    },
    {
      measure: 'the same while no job runs (Temporal away)',
      value: ms(quantile(alone, 0.99)),
      reference: `${ms(commit)} PostgreSQL commit`,
      ratio: `+${ms(quantile(alone, 0.99) - commit)}`,
      aim: '',
      met: true,
    },
  ];
}

/** INSERT and COMMIT alone, 50 at once on 20 connections, as the product has them. */
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
  for (let burst = 0; burst < BURSTS; burst++) tookMs.push(...(await load(BURST, insert)).tookMs);
  await pool.end();
  return tookMs;
}

async function untilDrained(url: string): Promise<void> {
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
