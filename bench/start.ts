import { mkdtemp, chmod, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { request } from 'undici';
import packageJson from '../package.json' with { type: 'json' };
import { freePort } from '../dev/freePort.ts';
import { startProgram } from './fixture.ts';
import { load } from './load.ts';
import { familyPss } from './memory.ts';
import { quantile, type BenchResult } from './report.ts';

const WARM_STARTS = 3;

/** Arguments of node in the script `start`. */
const START = packageJson.scripts.start.split(' ').slice(1);
const LOAD = { concurrency: 50, total: 1_500 };

/** Time from a warm start to `/readyz`, and memory of all processes of `npm start` under load. */
export async function bench(): Promise<BenchResult[]> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-bench-start-'));
  await chmod(folder, 0o711);
  try {
    await (await start(folder)).stop();
    const tookMs: number[] = [];
    for (let n = 0; n < WARM_STARTS; n++) {
      const began = performance.now();
      const stack = await start(folder);
      tookMs.push(performance.now() - began);
      await stack.stop();
    }
    const stack = await start(folder);
    const peak = await memoryUnderLoad(stack.base, stack.pid);
    await stack.stop();
    return results(quantile(tookMs, 0.5), peak);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function start(folder: string) {
  const port = await freePort(0);
  const base = `http://127.0.0.1:${port}`;
  const env = {
    HOLDFAST_DATA_DIR: folder,
    HOLDFAST_PORT: String(port),
    HOLDFAST_LOG_LEVEL: 'info',
  };
  const program = await startProgram(START, env, /"port":(\d+)/);
  for (;;) {
    const report = await request(`${base}/readyz`).then(
      ({ body }) => body.json() as Promise<{ status: string }>,
      () => undefined,
    );
    if (report?.status === 'ready')
      return { base, pid: program.child.pid ?? 0, stop: program.stop };
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function memoryUnderLoad(base: string, pid: number): Promise<number> {
  let peak = 0;
  let loading = true;
  const watch = (async () => {
    while (loading) {
      peak = Math.max(peak, await familyPss(pid));
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  })();
  await load(LOAD, async (n) => {
    const { body } = await request(`${base}/api/jobs`, {
      method: 'POST',
      body: JSON.stringify({ type: 'core.echo', payload: { n } }),
      headers: {
        'content-type': 'application/json',
        'x-service-actor-id': 'bench',
        'x-service-role-ids': 'operator',
        prefer: 'wait=60',
      },
    });
    await body.json();
  });
  loading = false;
  await watch;
  return peak;
}

const results = (startMs: number, memoryMib: number): BenchResult[] => [
  {
    measure: 'warm start to /readyz',
    value: `${(startMs / 1_000).toFixed(1)} s`,
    reference: '',
    ratio: '',
    target: '≤ 4 s',
    met: startMs <= 4_000,
  },
  {
    measure: 'memory (PSS) of the whole stack under the jobs load',
    value: `${memoryMib.toFixed(0)} MiB`,
    reference: '',
    ratio: '',
    target: '≤ 600 MiB',
    met: memoryMib <= 600,
  },
];
