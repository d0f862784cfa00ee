import pg from 'pg';
import { Agent, request } from 'undici';
import { startShape } from './cluster/shape.ts';
import { startProduct, startProgram, type BenchProcess } from './fixture.ts';
import { load, type LoadResult } from './load.ts';
import { median, ms, perSecond, type BenchResult } from './report.ts';

const ROUNDS = Number(process.env.CLUSTER_ROUNDS ?? 3);
const CONCURRENT = { concurrency: 50, total: 400 };
const SEQUENTIAL = { concurrency: 1, total: 50 };
const WARM_UP = { concurrency: 50, total: 200 };

/** Each role twice, as in docker-compose.yml. */
const PROCESSES = 2;

type Samples = { rates: number[]; singles: number[] };
type Servers = { databaseUrl: string; temporalAddress: string };

/**
 * Two APIs and two workers with PostgreSQL and a Temporal server on PostgreSQL, compared with the bare
 * SDK on the same servers. Builds the Temporal server once, which takes about ten minutes.
 */
export async function bench(): Promise<BenchResult[]> {
  const shape = await startShape({ max_connections: '300' });
  try {
    return await compare(shape, shape.adminUrl);
  } finally {
    await shape.stop();
  }
}

async function compare(servers: Servers, adminUrl: string): Promise<BenchResult[]> {
  const ours: Samples = { rates: [], singles: [] };
  const theirs: Samples = { rates: [], singles: [] };
  let connections = 0;
  // Alternating, so that other load on the machine affects both equally.
  for (let round = 0; round < ROUNDS; round++) {
    connections = Math.max(connections, await measureProduct(servers, adminUrl, ours));
    await measureBare(servers, theirs);
    const [rate, bare] = [ours.rates.at(-1) ?? 0, theirs.rates.at(-1) ?? 0];
    process.stdout.write(`round ${round + 1}: ${perSecond(rate)}, bare SDK ${perSecond(bare)}\n`);
  }
  return results(ours, theirs, connections);
}

/** Returns how many connections were open at PostgreSQL at the end of the load. */
async function measureProduct(servers: Servers, adminUrl: string, seen: Samples): Promise<number> {
  const processes: BenchProcess[] = [];
  const agent = new Agent({ connections: CONCURRENT.concurrency });
  try {
    for (const [role, ready] of [
      ['worker', /the worker is polling()/],
      ['api', /"port":(\d+).*listening/],
    ] as const)
      for (let n = 0; n < PROCESSES; n++)
        processes.push(await startProduct(servers, [], { HOLDFAST_ROLE: role }, ready));
    const ports = processes.slice(PROCESSES).map(({ ready }) => ready);
    const post = (n: number) => postJob(agent, ports[n % ports.length] ?? '', n);
    await load(WARM_UP, post);
    seen.rates.push((await load(CONCURRENT, post)).perSecond);
    const open = await countConnections(adminUrl);
    seen.singles.push(...(await load(SEQUENTIAL, post)).durationsMs);
    return open;
  } finally {
    await agent.close();
    await Promise.all(processes.map((each) => each.stop()));
  }
}

async function postJob(agent: Agent, port: string, n: number): Promise<void> {
  const answer = await request(`http://127.0.0.1:${port}/api/jobs`, {
    method: 'POST',
    dispatcher: agent,
    body: JSON.stringify({ type: 'core.echo', payload: { n } }),
    headers: {
      'content-type': 'application/json',
      'x-service-actor-id': 'bench',
      'x-service-role-ids': 'operator',
      prefer: 'wait=60',
    },
  });
  const body = (await answer.body.json()) as { status: string };
  if (answer.statusCode !== 201 || body.status !== 'succeeded')
    throw new Error(`${answer.statusCode} ${JSON.stringify(body)}`);
}

async function measureBare({ temporalAddress }: Servers, seen: Samples): Promise<void> {
  const env = { TEMPORAL_ADDRESS: temporalAddress };
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

async function countConnections(url: string): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<{ name: string; open: number }>(
    `SELECT datname AS name, count(*)::integer AS open FROM pg_stat_activity
     WHERE backend_type = 'client backend' GROUP BY datname`,
  );
  await client.end();
  process.stdout.write(`connections: ${JSON.stringify(rows)}\n`);
  return rows.reduce((sum, { open }) => sum + open, 0);
}

function results(ours: Samples, theirs: Samples, connections: number): BenchResult[] {
  const [rate, bareRate] = [median(ours.rates), median(theirs.rates)];
  const [single, bareSingle] = [median(ours.singles), median(theirs.singles)];
  return [
    {
      measure: 'jobs of 2 APIs and 2 workers, POST to completion, 50 concurrently',
      value: perSecond(rate),
      reference: `${perSecond(bareRate)} bare SDK`,
      ratio: (rate / bareRate).toFixed(2),
      target: '≥ 0.8',
      met: rate / bareRate >= 0.8,
    },
    {
      measure: 'the same, one at a time, p50',
      value: ms(single),
      reference: `${ms(bareSingle)} bare SDK`,
      ratio: (single / bareSingle).toFixed(2),
      target: '',
      met: true,
    },
    {
      measure: 'connections of Holdfast and Temporal to PostgreSQL',
      value: String(connections),
      reference: '300 allowed',
      ratio: '',
      target: '',
      met: true,
    },
  ];
}
