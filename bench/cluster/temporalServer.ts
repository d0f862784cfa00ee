import { execFile } from 'node:child_process';
import { access, cp, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { NativeConnection } from '@temporalio/worker';
import { startChild, waitUntilUp } from '../../dev/child.ts';
import { freePort } from '../../dev/freePort.ts';
import { ensureDatabase, type PostgresServer } from '../../dev/postgres.ts';

const run = promisify(execFile);

const VERSION = '1.31.2';
const MODULE = 'go.temporal.io/server';
const BUILD_LIMIT_MS = 3_600_000;
const START_LIMIT_MS = 120_000;
const NAMESPACE = 'default';
const DAY_SECONDS = 86_400;

/** As in docker-compose.yml. */
const DYNAMIC_CONFIG = `
system.enableActivityEagerExecution: [{ value: true }]
matching.enableFairness: [{ value: true }]
matching.numTaskqueueReadPartitions: [{ value: 1 }]
matching.numTaskqueueWritePartitions: [{ value: 1 }]
`;

const SERVICES = ['FRONTEND', 'MATCHING', 'HISTORY', 'WORKER'];
const DATABASES = { temporal: 'temporal', temporal_visibility: 'visibility' };

/** The server, the tool for its schema, and the schema, in the cache folder of this user. */
async function buildOnce(): Promise<string> {
  const cache = path.join(
    process.env.XDG_CACHE_HOME ?? path.join(os.homedir(), '.cache'),
    'holdfast',
  );
  const folder = path.join(cache, `temporal-server-${VERSION}`);
  const isThere = await access(folder).then(
    () => true,
    () => false,
  );
  if (isThere) return folder;
  process.stdout.write(
    'Building the Temporal server from its Go module: about 10 minutes, once.\n',
  );
  await mkdir(cache, { recursive: true });
  const scratch = await mkdtemp(path.join(cache, 'build-'));
  try {
    const options = {
      env: { ...process.env, CGO_ENABLED: '0', GOBIN: scratch, GOFLAGS: '' },
      maxBuffer: 16 * 1_048_576,
      timeout: BUILD_LIMIT_MS,
    };
    const packages = ['cmd/server', 'cmd/tools/sql'].map((name) => `${MODULE}/${name}@v${VERSION}`);
    await run('go', ['install', '-ldflags', '-s -w', ...packages], options);
    const download = await run(
      'go',
      ['mod', 'download', '-json', `${MODULE}@v${VERSION}`],
      options,
    );
    const { Dir: source } = JSON.parse(download.stdout) as { Dir: string };
    await cp(path.join(source, 'schema/postgresql/v12'), path.join(scratch, 'schema'), {
      recursive: true,
    });
    await rename(scratch, folder);
    return folder;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function prepareSchema(folder: string, postgres: PostgresServer): Promise<void> {
  const { username, password, hostname, port } = new URL(postgres.url(''));
  const env = {
    SQL_PLUGIN: 'postgres12',
    SQL_HOST: hostname,
    SQL_PORT: port,
    SQL_USER: username,
    SQL_PASSWORD: password,
  };
  for (const [name, schema] of Object.entries(DATABASES)) {
    await ensureDatabase(postgres, name);
    const versions = path.join(folder, 'schema', schema, 'versioned');
    for (const args of [
      ['setup-schema', '-v', '0.0'],
      ['update-schema', '-d', versions],
    ])
      await run(path.join(folder, 'sql'), ['--db', name, ...args], { env });
  }
}

/** A free port that fits into the columns of Temporal: 16 bits with a sign. */
async function lowPort(): Promise<number> {
  for (;;) {
    const preferred = 20_000 + Math.floor(Math.random() * 12_000);
    if ((await freePort(preferred)) === preferred) return preferred;
  }
}

/** Ports and the variables that the configuration in the server reads, as docker-compose.yml sets them. */
async function serverEnv(
  postgres: PostgresServer,
  dynamicConfig: string,
): Promise<Record<string, string>> {
  const { username, password, hostname, port } = new URL(postgres.url(''));
  const ports: Record<string, string> = {};
  for (const service of SERVICES)
    for (const kind of ['GRPC', 'MEMBERSHIP'])
      ports[`${service}_${kind}_PORT`] = String(await lowPort());
  return {
    DB: 'postgres12',
    DB_PORT: port,
    POSTGRES_SEEDS: hostname,
    POSTGRES_USER: username,
    POSTGRES_PWD: password,
    DBNAME: 'temporal',
    VISIBILITY_DBNAME: 'temporal_visibility',
    NUM_HISTORY_SHARDS: '512',
    SQL_MAX_CONNS: '20',
    SQL_VIS_MAX_CONNS: '10',
    BIND_ON_IP: '127.0.0.1',
    LOG_LEVEL: 'error',
    DYNAMIC_CONFIG_FILE_PATH: dynamicConfig,
    FRONTEND_HTTP_PORT: String(await freePort(0)),
    ...ports,
  };
}

/** Creates the namespace when the server answers. */
async function createNamespace(address: string): Promise<void> {
  const connection = await NativeConnection.connect({ address });
  try {
    await connection.workflowService
      .registerNamespace({
        namespace: NAMESPACE,
        workflowExecutionRetentionPeriod: { seconds: (3 * DAY_SECONDS) as unknown as Long },
      })
      .catch((error: unknown) => {
        if (!String(error).includes('already exists')) throw error;
      });
    await connection.workflowService.describeNamespace({ namespace: NAMESPACE });
  } finally {
    await connection.close();
  }
}

/** Starts a Temporal server as production has it: all services, on PostgreSQL. */
export async function startTemporalServer(postgres: PostgresServer, folder: string) {
  const programs = await buildOnce();
  await prepareSchema(programs, postgres);
  const dynamicConfig = path.join(folder, 'dynamicconfig.yaml');
  await writeFile(dynamicConfig, DYNAMIC_CONFIG);
  const env = await serverEnv(postgres, dynamicConfig);
  const address = `127.0.0.1:${env.FRONTEND_GRPC_PORT ?? ''}`;
  const logFile = path.join(folder, 'temporal.log');
  const start = async () => {
    const child = await startChild(path.join(programs, 'server'), ['--allow-no-auth', 'start'], {
      logFile,
      stopSignal: 'SIGTERM',
      onSpawn: () => Promise.resolve(),
      options: { env: { ...process.env, ...env }, cwd: folder },
    });
    await waitUntilUp(child, {
      name: 'Temporal',
      logFile,
      limitMs: START_LIMIT_MS,
      check: () => createNamespace(address),
    });
    return child;
  };
  let child = await start();
  return {
    address,
    stop: () => child.stop(20_000),
    /** Again, after it was stopped. */
    start: async () => void (child = await start()),
  };
}
