import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { startEndpoint, type BenchEndpoint } from './events/endpoint.ts';
import { createTenantApi } from './fairness/api.ts';
import { startBenchEnvironment, startProduct } from './fixture.ts';
import type { BenchResult } from './report.ts';
import {
  createOperations,
  HEALTHY,
  prepareTenant,
  sequence,
  type Operation,
} from './soak/operations.ts';
import { soakResults, windowsTable, type Window } from './soak/report.ts';
import { diskUse, takeSample, type Sample } from './soak/samples.ts';

/** `HOLDFAST_BENCH_MINUTES=6` makes a quick run, to see that everything works. */
const MINUTES = Number(process.env.HOLDFAST_BENCH_MINUTES ?? 60);
const WINDOWS = 6;
const WINDOW_MS = (MINUTES * 60_000) / WINDOWS;
const LANES = 12;
const CAPACITY_MS = Math.min(60_000, WINDOW_MS);
const LOAD_OF_CAPACITY = 0.5;
const SAMPLE_MS = 5_000;
const SHOWN_FAILURES = 5;
const TENANT = 'soak';

/**
 * Mixed load at half of what one process with the defaults can do, for an hour: does memory, the number of
 * connections, the disk or the time of a request grow? Prints a table of six windows.
 */
export async function bench(): Promise<BenchResult[]> {
  const environment = await startBenchEnvironment();
  const endpoint = await startEndpoint();
  const product = await startProduct(environment);
  const base = `http://127.0.0.1:${product.ready}`;
  const api = createTenantApi(base, TENANT);
  const client = new pg.Client({ connectionString: environment.databaseUrl });
  await client.connect();
  try {
    const platform = createTenantApi(base, 'platform');
    await platform.send('POST', '/api/inventory/tenants', { id: TENANT, name: TENANT });
    await platform.close();
    const { stopFollowers, ...ids } = await prepareTenant(api, endpoint);
    const operations = sequence(createOperations(api, ids));
    await saturate(operations, CAPACITY_MS / 2);
    const capacity = await saturate(operations, CAPACITY_MS);
    process.stderr.write(`The capacity is ${capacity.toFixed(1)} operations a second\n`);
    const windows: Window[] = [];
    for (let n = 0; n < WINDOWS; n++) {
      const window = await offerOperations(operations, capacity * LOAD_OF_CAPACITY, endpoint, () =>
        takeSample(client, product.child.pid ?? 0),
      );
      windows.push({ ...window, disk: await diskUse(client, environment.folder) });
      process.stderr.write(`\n${windowsTable(windows, MINUTES / WINDOWS)}\n`);
    }
    stopFollowers();
    return soakResults(windows, MINUTES);
  } finally {
    await api.close();
    await client.end();
    await product.stop();
    await endpoint.stop();
    await environment.stop();
  }
}

/** Repeats operations in lanes. Returns how many are done in a second. */
async function saturate(operations: Iterator<Operation, never>, durationMs: number) {
  const endsAt = performance.now() + durationMs;
  let done = 0;
  const runLane = async () => {
    while (performance.now() < endsAt) {
      await operations.next().value.run(done);
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: LANES }, runLane));
  return done / (durationMs / 1_000);
}

/**
 * Starts operations at a fixed rate for one window, whether earlier ones have ended or not. Durations count
 * from the time at which an operation was due.
 */
async function offerOperations(
  operations: Iterator<Operation, never>,
  perSecond: number,
  endpoint: BenchEndpoint,
  probe: () => Promise<Sample>,
): Promise<Omit<Window, 'disk'>> {
  const durations: Window['durations'] = {
    read: [],
    write: [],
    job: [],
    'long job': [],
    approval: [],
    batch: [],
  };
  const samples: Sample[] = [];
  const arrivalsBefore = endpoint.arrivals.length;
  let failures = 0;
  const perform = async ({ group, run }: Operation, n: number, dueAt: number) => {
    await run(n).catch((error: unknown) => {
      if (failures++ < SHOWN_FAILURES) process.stderr.write(`${String(error)}\n`);
    });
    durations[group].push(performance.now() - dueAt);
  };
  const pending = new Set<Promise<unknown>>();
  const track = (work: Promise<unknown>) => {
    const tracked = work.finally(() => pending.delete(tracked));
    pending.add(tracked);
  };
  const startedAt = performance.now();
  const total = Math.round((perSecond * WINDOW_MS) / 1_000);
  let sampledAt = Number.NEGATIVE_INFINITY;
  for (let n = 0; n < total; n++) {
    const dueAt = startedAt + (n * 1_000) / perSecond;
    await sleep(Math.max(0, dueAt - performance.now()));
    track(perform(operations.next().value, n, dueAt));
    if (dueAt - sampledAt < SAMPLE_MS) continue;
    sampledAt = dueAt;
    track(probe().then((sample) => samples.push(sample)));
  }
  await Promise.all(pending);
  const arrivals = endpoint.arrivals
    .slice(arrivalsBefore)
    .filter((arrival) => arrival.path === HEALTHY)
    .map(({ afterMs }) => afterMs);
  return { operations: total, failures, durations, arrivals, samples };
}
