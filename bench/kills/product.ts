import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../dev/freePort.ts';
import { killedCommand, markOf } from '../../dev/kills/command.ts';
import { shims } from '../../dev/kills/processTable.ts';
import type { Stack } from '../../dev/stack.ts';
import { createTenantApi, type TenantApi } from '../fairness/api.ts';
import { productEnv } from '../fixture.ts';
import { keepRunning, startBalancer, type KilledProcess } from './processes.ts';

const POOL = 'kills';
/** A type whose jobs have many attempts, and one whose jobs have one. */
export const REPEATED = 'kills.repeated';
export const SINGLE = 'kills.single';

/** Two APIs behind one address, two workers and two runners, each of which can be killed at any time. */
export async function startKilledProduct(environment: Stack & { folder: string }) {
  const { folder, temporalAddress } = environment;
  await using started = new AsyncDisposableStack();
  const ports = [await freePort(0), await freePort(0)];
  const balancer = await startBalancer(ports);
  started.defer(() => balancer.stop());
  const base = `http://127.0.0.1:${balancer.port}`;
  const keep = (env: Readonly<Record<string, string>>) => {
    const kept = keepRunning({
      TEMPORAL_ADDRESS: temporalAddress,
      HOLDFAST_LOG_LEVEL: 'error',
      ...env,
    });
    started.defer(() => kept.stop());
    return kept;
  };
  const server = {
    ...productEnv(environment),
    HOLDFAST_BACKUP_DIR: path.join(folder, 'store'),
  };
  const types = path.join(folder, 'types');
  await declareTypes(types);
  const apis = ports.map((port) =>
    keep({ ...server, HOLDFAST_ROLE: 'api', HOLDFAST_PORT: String(port) }),
  );
  const worker = { ...server, HOLDFAST_ROLE: 'worker', HOLDFAST_PORT: '0' };
  const workers = [keep(worker), keep(worker)];
  const tenant = createTenantApi(base, 'platform');
  started.defer(() => tenant.close());
  const runner = {
    HOLDFAST_ROLE: 'runner',
    HOLDFAST_URL: base,
    HOLDFAST_RUNNER_TOKEN: await prepare(tenant),
    HOLDFAST_RUNNER_POOL: POOL,
    HOLDFAST_RUNNER_TYPES: types,
    HOLDFAST_RUNNER_FOLDER: path.join(folder, 'work'),
  };
  const runners = [keep(runner), keep(runner)];
  await untilAnnounced(tenant);
  const mark = markOf(types);
  const victims: Record<string, () => boolean | Promise<boolean>> = {
    runner: () => killOne(runners),
    shim: () => killShim(mark),
    API: () => killOne(apis),
    worker: () => killOne(workers),
  };
  const resources = started.move();
  return { tenant, victims, types, mark, stop: () => resources.disposeAsync() };
}

async function killShim(mark: string): Promise<boolean> {
  const [one] = shuffled(await shims(mark));
  try {
    return one !== undefined && process.kill(one, 'SIGKILL');
  } catch {
    return false;
  }
}

const shuffled = <T>(values: readonly T[]): T[] => values.toSorted(() => Math.random() - 0.5);

const killOne = (processes: readonly KilledProcess[]): boolean =>
  shuffled(processes)[0]?.kill() === true;

async function declareTypes(folder: string): Promise<void> {
  await mkdir(folder);
  for (const [name, maxAttempts] of [
    [REPEATED, 100],
    [SINGLE, 1],
  ] as const)
    await writeFile(
      path.join(folder, `${name}.yaml`),
      JSON.stringify({
        apiVersion: 'holdfast/v1',
        ...{ name, summary: 'Is killed', pool: POOL, access: 'open', payload: { type: 'object' } },
        lostAfterSeconds: 5,
        run: killedCommand(folder),
        retry: { maxAttempts, initialIntervalSeconds: 0.1, backoffCoefficient: 1 },
      }),
    );
}

/** On a busy machine both APIs may be away for some starts in a row. */
const PERSIST_MS = 10 * 60_000;

/** Repeats a request while the API is away. */
export async function persistently<T>(send: () => Promise<T>): Promise<T> {
  for (const until = performance.now() + PERSIST_MS; ;) {
    try {
      return await send();
    } catch (error) {
      if (performance.now() > until) throw error;
      await sleep(200);
    }
  }
}

/** Creates the pool, and the token of its runner. */
async function prepare({ send }: TenantApi): Promise<string> {
  await persistently(() => send('GET', '/api/pools'));
  await send('POST', '/api/pools', {
    name: POOL,
    acceptTypes: ['kills.*'],
    tenantSharePercent: 100,
  });
  const owner = await send('POST', '/api/users', {
    username: 'owner',
    password: 'correct horse battery',
    mustChangePassword: false,
  });
  const account = await send('POST', '/api/service-accounts', { name: 'r', ownerId: owner.id });
  const path = `/api/service-accounts/${String(account.id)}/tokens`;
  const { token } = await send('POST', path, { name: 'r', pools: [POOL] });
  return String(token);
}

const untilAnnounced = ({ send }: TenantApi) =>
  persistently(async () => {
    const { state } = await send('GET', `/api/job-types/${SINGLE}`);
    if (state !== 'accepted') throw new Error(`The type is ${String(state)}`);
  });
