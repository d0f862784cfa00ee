import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { prepareRun } from '../../runner/command/preparedRun.ts';
import { openWorkFolder } from '../../runner/command/runFolder.ts';
import { load, offer } from '../load.ts';
import { median, ms, perSecond, quantile, type BenchResult } from '../report.ts';
import { FLOOD_LINES, startRemoteStack, type RemoteStack } from './remoteStack.ts';

const ROUNDS = Number(process.env.HOLDFAST_BENCH_ROUNDS ?? 3);
const WARM_UP = { concurrency: 10, total: 20 };
const SEQUENTIAL = { concurrency: 1, total: 40 };
const BURST = { concurrency: 50, total: 50 };
const FLOODS = 5;
/** What others do while a job floods its log. */
const OTHERS_MS = 10_000;
const SHORT_PER_SECOND = 20;
const REMOTE_PER_SECOND = 3;

type Job = { id: string; status: string; startedAt: string; finishedAt: string };

type Latencies = { short: number[]; remote: number[] };

type Samples = {
  singles: number[];
  short: number[];
  processes: number[];
  bursts: number[];
  burstTotals: number[];
  /** Lines a second of each job alone. */
  floods: number[];
  alone: Latencies;
  beside: Latencies;
  /** Lines a second that were stored while others worked. */
  besideRates: number[];
};

/** Runs a job to its end. */
async function runJob({ api }: RemoteStack, type: string): Promise<Job> {
  const prefer = { prefer: 'wait=60' };
  const job = (await api.send('POST', '/api/jobs', { type, payload: {} }, prefer)) as Job;
  if (job.status !== 'succeeded') throw new Error(`${type}: ${JSON.stringify(job)}`);
  return job;
}

/** The process of `true` alone: its folder, its shim, the command, and the end of all. */
async function processTimes(): Promise<number[]> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-bench-'));
  const workFolder = await openWorkFolder(folder);
  const { durationsMs } = await load(SEQUENTIAL, async () => {
    const { shim, run, discard } = await prepareRun(workFolder);
    const env = { PATH: process.env.PATH ?? '' };
    const spec = { argv: ['true'], wrapped: [], cwd: '/', env, mark: run.mark, lease: undefined };
    const command = shim.run(spec);
    await command.exit;
    await command.killAll();
    command.stdout.destroy();
    command.stderr.destroy();
    await discard();
  });
  await rm(folder, { recursive: true });
  return durationsMs;
}

/** Short jobs and remote ones at a fixed rate. */
async function measureOthers(stack: RemoteStack, into: Latencies): Promise<void> {
  const run = async (type: string, rate: number) =>
    (await offer({ perSecond: rate, total: (rate * OTHERS_MS) / 1_000 }, () => runJob(stack, type)))
      .durationsMs;
  const [short, remote] = await Promise.all([
    run('core.echo', SHORT_PER_SECOND),
    run('bench.true', REMOTE_PER_SECOND),
  ]);
  into.short.push(...short);
  into.remote.push(...remote);
}

/** How long a job took from the start of its attempt to its end, in lines a second. */
async function flood(stack: RemoteStack): Promise<number> {
  const { id, startedAt, finishedAt } = await runJob(stack, 'bench.flood');
  const count = await stack.countLines(id);
  if (count < FLOOD_LINES) throw new Error(`Only ${count} lines were stored`);
  return (count * 1_000) / (Date.parse(finishedAt) - Date.parse(startedAt));
}

/** Jobs that flood their logs, one right after the other, until `work` has ended. */
async function besideFloods<T>(stack: RemoteStack, rates: number[], work: () => Promise<T>) {
  let isOver = false;
  const flooding = (async () => {
    while (!isOver) rates.push(await flood(stack));
  })();
  try {
    return await work();
  } finally {
    isOver = true;
    await flooding;
  }
}

async function measureRound(stack: RemoteStack, samples: Samples): Promise<void> {
  await load(WARM_UP, () => runJob(stack, 'bench.true'));
  await load(WARM_UP, () => runJob(stack, 'core.echo'));
  samples.singles.push(...(await load(SEQUENTIAL, () => runJob(stack, 'bench.true'))).durationsMs);
  samples.short.push(...(await load(SEQUENTIAL, () => runJob(stack, 'core.echo'))).durationsMs);
  samples.processes.push(...(await processTimes()));
  const startedAt = performance.now();
  samples.bursts.push(...(await load(BURST, () => runJob(stack, 'bench.true'))).durationsMs);
  samples.burstTotals.push(performance.now() - startedAt);
  for (let n = 0; n < FLOODS; n++) samples.floods.push(await flood(stack));
  await measureOthers(stack, samples.alone);
  await besideFloods(stack, samples.besideRates, () => measureOthers(stack, samples.beside));
}

/** Jobs that a runner runs, with the runner and the product as processes of their own. */
export async function bench(): Promise<BenchResult[]> {
  const samples: Samples = {
    singles: [],
    short: [],
    processes: [],
    bursts: [],
    burstTotals: [],
    floods: [],
    alone: { short: [], remote: [] },
    beside: { short: [], remote: [] },
    besideRates: [],
  };
  const stack = await startRemoteStack();
  try {
    for (let round = 0; round < ROUNDS; round++) await measureRound(stack, samples);
  } finally {
    await stack.stop();
  }
  return [...latencies(samples), ...logs(samples)];
}

const MAX_SINGLE_MS = 150;
const MIN_LINES = 20_000;
const MAX_RATIO = 2;

const row = (measure: string, value: string, more: Partial<BenchResult> = {}): BenchResult => ({
  measure,
  value,
  reference: '',
  ratio: '',
  target: '',
  met: true,
  ...more,
});

function latencies({ singles, short, processes, bursts, burstTotals }: Samples): BenchResult[] {
  const single = median(singles);
  return [
    row('`true` as a declared command, POST to completion, one at a time, p50', ms(single), {
      reference: `${ms(median(short))} \`core.echo\``,
      target: `≤ ${MAX_SINGLE_MS} ms`,
      met: single <= MAX_SINGLE_MS,
    }),
    row('the same, p95', ms(quantile(singles, 0.95)), {
      reference: `${ms(quantile(short, 0.95))} \`core.echo\``,
    }),
    row(
      'its process alone, with its folder, from preparation to removal, p50',
      ms(median(processes)),
    ),
    row('50 of them concurrently, all', ms(median(burstTotals))),
    row('the same, p50 of one', ms(median(bursts)), {
      reference: `p99 ${ms(quantile(bursts, 0.99))}`,
    }),
  ];
}

function logs({ floods, besideRates, alone, beside }: Samples): BenchResult[] {
  const rate = median(floods);
  const compared = (name: string, kind: keyof Latencies): BenchResult => {
    const [with_, without] = [quantile(beside[kind], 0.99), quantile(alone[kind], 0.99)];
    return row(`${name} beside such jobs, p99`, ms(with_), {
      reference: `${ms(without)} without`,
      ratio: (with_ / without).toFixed(2),
      target: `≤ ${MAX_RATIO}`,
      met: with_ / without <= MAX_RATIO,
    });
  };
  return [
    row(
      `${FLOOD_LINES} lines of 80 characters of one declared command, start to completion of the job`,
      perSecond(rate),
      { target: `≥ ${MIN_LINES}/s`, met: rate >= MIN_LINES },
    ),
    row('the same, one right after the other, beside other jobs', perSecond(median(besideRates))),
    compared('`core.echo`', 'short'),
    compared('`true` as a declared command', 'remote'),
  ];
}
