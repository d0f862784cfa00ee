import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { createTenantApi, type TenantApi } from '../fairness/api.ts';
import { startBenchEnvironment, startProduct, startProgram } from '../fixture.ts';

const POOL = 'bench';

/** Lines that one job writes: with those of Holdfast itself they are just what its log has space for. */
export const FLOOD_LINES = 9_990;
const LINE = 'The port Ethernet1/17 of leaf-03 is up, with an MTU of 9216 and no errors yet.';

/** The declared commands of the benchmark, as a user writes them. */
const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  true: ['true'],
  flood: ['bash', '-c', `yes '${LINE}' | head -n ${FLOOD_LINES}`],
  endless: ['yes', LINE],
};

/** The product, a runner in a process of its own, and the API. */
export type RemoteStack = {
  api: TenantApi;
  /** The number of lines in the log of a job. */
  countLines(jobId: string): Promise<number>;
  stop(): Promise<void>;
};

async function writeTypes(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const [name, argv] of Object.entries(COMMANDS))
    await writeFile(
      path.join(folder, `${name}.yaml`),
      JSON.stringify({
        apiVersion: 'holdfast/v1',
        name: `bench.${name}`,
        summary: `Runs ${name}`,
        pool: POOL,
        access: 'open',
        payload: { type: 'object' },
        run: { argv },
      }),
    );
}

/** Creates the pool, and returns a token for its runner. */
async function createRunnerToken(api: TenantApi): Promise<string> {
  await api.send('POST', '/api/pools', {
    name: POOL,
    acceptTypes: ['bench.*'],
    tenantSharePercent: 100,
  });
  const owner = await api.send('POST', '/api/users', {
    username: 'bench',
    password: 'correct horse battery',
  });
  const account = await api.send('POST', '/api/service-accounts', {
    name: 'bench-runner',
    ownerId: owner.id,
  });
  const { token } = await api.send('POST', `/api/service-accounts/${String(account.id)}/tokens`, {
    name: 'bench',
    pools: [POOL],
  });
  return String(token);
}

/** Starts the product and a runner with the defaults, each as a process of its own. */
export async function startRemoteStack(): Promise<RemoteStack> {
  const resources = new AsyncDisposableStack();
  try {
    const environment = await startBenchEnvironment();
    resources.defer(() => environment.stop());
    const product = await startProduct(environment);
    resources.defer(() => product.stop());
    const base = `http://127.0.0.1:${product.ready}`;
    const api = createTenantApi(base, 'platform');
    resources.defer(() => api.close());
    const types = path.join(environment.folder, 'job-types');
    await writeTypes(types);
    const runner = await startProgram(
      ['processes/main.ts'],
      {
        HOLDFAST_ROLE: 'runner',
        HOLDFAST_LOG_LEVEL: 'info',
        HOLDFAST_URL: base,
        HOLDFAST_RUNNER_TOKEN: await createRunnerToken(api),
        HOLDFAST_RUNNER_POOL: POOL,
        HOLDFAST_RUNNER_TYPES: types,
        HOLDFAST_RUNNER_FOLDER: path.join(environment.folder, 'runs'),
        TEMPORAL_ADDRESS: environment.temporalAddress,
      },
      /the runner is polling()/,
    );
    resources.defer(() => runner.stop());
    const database = new pg.Client({ connectionString: environment.databaseUrl });
    await database.connect();
    resources.defer(() => database.end());
    return {
      api,
      async countLines(jobId) {
        const { rows } = await database.query<{ count: number }>(
          'SELECT count(*)::integer AS count FROM job_logs WHERE job_id = $1',
          [jobId],
        );
        return rows[0]?.count ?? 0;
      },
      stop: () => resources.disposeAsync(),
    };
  } catch (error) {
    await resources.disposeAsync();
    throw error;
  }
}
