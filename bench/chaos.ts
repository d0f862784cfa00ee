import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { checkPromises, type Checked } from './chaos/check.ts';
import { disturbancesOf, type Disturbance } from './chaos/disturbances.ts';
import { startShape } from './cluster/shape.ts';
import { freePort } from '../dev/freePort.ts';
import { createTenantApi, type TenantApi } from './fairness/api.ts';
import { productEnv } from './fixture.ts';
import { keepRunning, startBalancer } from './kills/processes.ts';
import { persistently } from './kills/product.ts';
import type { BenchResult } from './report.ts';
import { startServer } from './server.ts';

/** `HOLDFAST_BENCH_CHAOS_ROUNDS=1` lets each disturbance happen once. */
const ROUNDS = Number(process.env.HOLDFAST_BENCH_CHAOS_ROUNDS ?? 2);
/** Between two disturbances, in which everything works. */
const CALM_MS = 4_000;
/** Jobs are created all the time: the number of callers, each of which pauses after each job. */
const CALLERS = 8;
const PAUSE_MS = 400;
/** The share of messages that the endpoint refuses, and that must come again: one in this number. */
const REFUSED = 20;
const END_LIMIT_MS = 10 * 60_000;

/**
 * Two APIs and two workers with PostgreSQL and a Temporal server on PostgreSQL, which are killed, frozen and
 * restarted one after the other while jobs are created. Checks that each accepted job was done once, that
 * each event was delivered, and that the audit log is whole.
 */
export async function bench(): Promise<BenchResult[]> {
  await using resources = new AsyncDisposableStack();
  const shape = await startShape({ max_connections: '200' });
  resources.defer(() => shape.stop());
  const endpoint = await startEndpoint();
  resources.defer(() => endpoint.stop());
  const ports = [await freePort(0), await freePort(0)];
  const balancer = await startBalancer(ports);
  resources.defer(() => balancer.stop());
  const env = {
    ...productEnv(shape),
    HOLDFAST_LOG_LEVEL: 'fatal',
    HOLDFAST_STOP_DELAY_MS: '500',
    HOLDFAST_BACKUP_DIR: path.join(shape.folder, 'store'),
  };
  const keep = (role: string, port: number) => {
    const kept = keepRunning({ ...env, HOLDFAST_ROLE: role, HOLDFAST_PORT: String(port) });
    resources.defer(() => kept.stop());
    return kept;
  };
  const workers = [keep('worker', 0), keep('worker', 0)];
  const apis = ports.map((port) => keep('api', port));
  const api = createTenantApi(`http://127.0.0.1:${balancer.port}`, 'platform');
  resources.defer(() => api.close());
  await persistently(() => api.send('GET', '/api/jobs'));
  await api.send('POST', '/api/webhooks', {
    endpointUrl: endpoint.url,
    eventTypes: ['job.succeeded'],
  });

  const startedAt = performance.now();
  const ending = new AbortController();
  const accepted = createJobs(api, ending.signal);
  const happened = await disturb(disturbancesOf({ apis, workers, ...shape }));
  ending.abort();
  const seen = { accepted: await accepted, arrived: endpoint.arrived };
  const client = new pg.Client({ connectionString: shape.databaseUrl });
  await client.connect();
  resources.defer(() => client.end());
  await untilNothingWaits(client);
  const seconds = (performance.now() - startedAt) / 1_000;
  const checked = await checkPromises(client, shape.databaseUrl, seen);
  for (const problem of checked.problems) process.stderr.write(`${problem}\n`);
  if (checked.problems.length > 0) process.exitCode = 1;
  return results(checked, happened, seconds);
}

/** Lets everything happen, round by round. Returns how often something has happened. */
async function disturb(disturbances: readonly Disturbance[]): Promise<number> {
  let count = 0;
  for (let round = 0; round < ROUNDS; round++)
    for (const { name, happen } of disturbances) {
      await sleep(CALM_MS);
      process.stderr.write(`${name}\n`);
      await happen();
      count++;
    }
  await sleep(CALM_MS);
  return count;
}

/** Creates jobs until `signal` is aborted; each request is repeated until it is answered. Returns their ids. */
async function createJobs({ send }: TenantApi, signal: AbortSignal): Promise<Set<string>> {
  const ids = new Set<string>();
  const call = async (caller: number) => {
    for (let n = 0; !signal.aborted; n++) {
      const key = { 'idempotency-key': `chaos-${caller}-${n}` };
      const job = { type: 'core.echo', payload: { caller, n } };
      ids.add(String((await persistently(() => send('POST', '/api/jobs', job, key))).id));
      await sleep(PAUSE_MS);
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, (_, caller) => call(caller)));
  return ids;
}

/** Resolves when no job and no delivery waits any more, or when they have had their time. */
async function untilNothingWaits(client: pg.Client): Promise<void> {
  const until = performance.now() + END_LIMIT_MS;
  for (;;) {
    const { rows } = await client.query<{ waiting: number }>(`
      SELECT (SELECT count(*)::integer FROM jobs WHERE status IN ('queued', 'running'))
        + (SELECT count(*)::integer FROM deliveries WHERE status = 'pending')
        + (SELECT count(*)::integer FROM jobs WHERE type = 'core.echo')
        - (SELECT count(*)::integer FROM deliveries) AS waiting`);
    if (rows[0]?.waiting === 0 || performance.now() > until) return;
    await sleep(500);
  }
}

/** An endpoint that counts the messages of each event, and refuses some. */
async function startEndpoint() {
  const arrived = new Map<string, number>();
  let count = 0;
  const { base, stop } = await startServer((incoming, response) => {
    incoming.resume();
    incoming.on('end', () => {
      count += 1;
      if (count % REFUSED === 0) {
        response.writeHead(503).end();
        return;
      }
      const id = String(incoming.headers['webhook-id']);
      arrived.set(id, (arrived.get(id) ?? 0) + 1);
      response.writeHead(204).end();
    });
  });
  return {
    arrived,
    url: `${base}/chaos`,
    stop,
  };
}

const row = (measure: string, value: string | number, reference = ''): BenchResult => ({
  ...{ measure, value: String(value), reference, ratio: '', target: '', met: true },
});

const results = (checked: Checked, happened: number, seconds: number): BenchResult[] => [
  row('jobs accepted and done', checked.jobs, `${checked.repeated} attempts repeated`),
  row('events delivered', checked.deliveries, `${checked.again} messages again`),
  row('disturbances', happened, `${seconds.toFixed(0)} s`),
  {
    ...row('problems', checked.problems.length),
    ...{ target: '0', met: checked.problems.length === 0 },
  },
];
