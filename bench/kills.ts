import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { checkJobs } from '../dev/kills/check.ts';
import { processesWith } from '../dev/kills/processTable.ts';
import type { TenantApi } from './fairness/api.ts';
import { startBenchEnvironment } from './fixture.ts';
import { persistently, REPEATED, SINGLE, startKilledProduct } from './kills/product.ts';
import type { BenchResult } from './report.ts';

/** `HOLDFAST_BENCH_KILL_JOBS=20` makes a quick run, to see that everything works. */
const JOBS = Number(process.env.HOLDFAST_BENCH_KILL_JOBS ?? 200);
const CONCURRENT = 8;
const KILL_EVERY_MS = 1_000;
const LIMIT_MS = 45 * 60_000;
/** What is killed at the end may take so long to end. */
const ENDING_MS = 2_000;
/** The share of jobs that may have one attempt only: one in this number. */
const SINGLE_SHARE = 10;

/**
 * Runs a declared command many times while a runner, a shim, an API or a worker is killed each second, of two
 * of each. Checks that each job has ended once, that no attempt, line or process was doubled, and that no
 * process is left.
 */
export async function bench(): Promise<BenchResult[]> {
  await using resources = new AsyncDisposableStack();
  const environment = await startBenchEnvironment();
  resources.defer(() => environment.stop());
  const client = new pg.Client({ connectionString: environment.databaseUrl });
  await client.connect();
  resources.defer(() => client.end());
  const product = await startKilledProduct(environment);
  resources.defer(() => product.stop());
  const startedAt = performance.now();
  const killing = new AbortController();
  const kills = killRepeatedly(product.victims, killing.signal);
  await runAll(product.tenant, client);
  killing.abort();
  const seconds = (performance.now() - startedAt) / 1_000;
  const killed = await kills;
  await sleep(ENDING_MS);
  const checked = await checkJobs(client, product.types, JOBS);
  const left = await processesWith(product.mark);
  const problems = [...checked.problems, ...left.map((id) => `the process ${id} is left`)];
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  if (problems.length > 0) process.exitCode = 1;
  return results({ ...checked, problems }, killed, seconds);
}

/** Kills one of `victims` each second until `signal` is aborted. Returns how often each was killed. */
async function killRepeatedly(
  victims: Readonly<Record<string, () => boolean | Promise<boolean>>>,
  signal: AbortSignal,
): Promise<Record<string, number>> {
  const killed: Record<string, number> = {};
  const names = Object.keys(victims);
  while (!signal.aborted) {
    await sleep(KILL_EVERY_MS, undefined, { signal }).catch(() => undefined);
    const name = names[Math.floor(Math.random() * names.length)] ?? '';
    if (!signal.aborted && (await victims[name]?.())) killed[name] = (killed[name] ?? 0) + 1;
  }
  return killed;
}

/** Creates all jobs, some at a time, and waits until all have ended. */
async function runAll({ send }: TenantApi, client: pg.Client): Promise<void> {
  const until = performance.now() + LIMIT_MS;
  const unfinished = async () => {
    const { rows } = await client.query<{ count: number }>(
      `SELECT count(*)::integer AS count FROM jobs WHERE pool <> '' AND status IN ('queued', 'running')`,
    );
    return rows[0]?.count ?? 0;
  };
  let created = 0;
  while (created < JOBS || (await unfinished()) > 0) {
    if (performance.now() > until) return;
    while (created < JOBS && (await unfinished()) < CONCURRENT) {
      const type = created % SINGLE_SHARE === 0 ? SINGLE : REPEATED;
      const key = { 'idempotency-key': `kills-${created}` };
      await persistently(() => send('POST', '/api/jobs', { type, payload: {} }, key));
      created++;
    }
    process.stderr.write(`\r${created} of ${JOBS} jobs created`);
    await sleep(500);
  }
  process.stderr.write('\n');
}

type Checked = { jobs: number; succeeded: number; attempts: number; problems: string[] };

const row = (measure: string, value: string | number, reference = ''): BenchResult => ({
  ...{ measure, value: String(value), reference, ratio: '', target: '', met: true },
});

const results = (
  { jobs, succeeded, attempts, problems }: Checked,
  killed: Readonly<Record<string, number>>,
  seconds: number,
): BenchResult[] => [
  row('jobs that have ended', jobs, `${succeeded} succeeded, in ${attempts} attempts`),
  row(
    'kills',
    Object.values(killed).reduce((sum, each) => sum + each, 0),
    Object.entries(killed)
      .map(([name, count]) => `${name} ${count}`)
      .join(', '),
  ),
  row('duration', `${seconds.toFixed(0)} s`),
  { ...row('problems', problems.length), target: '0', met: problems.length === 0 },
];
