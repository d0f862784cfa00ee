import { spawn, type ChildProcess } from 'node:child_process';
import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { openDatabase } from '../db/core/knex.ts';
import { migrateUp } from '../db/core/migrate.ts';
import { ensureDatabase } from '../dev/postgres.ts';
import { createConsole } from '../dev/console.ts';
import { startStack, type Stack } from '../dev/stack.ts';
import { createLog } from '../platform/log.ts';

export const ROOT = path.resolve(import.meta.dirname, '..');

/** Starts PostgreSQL and Temporal as `npm start` does, on a temporary folder. */
export async function startBenchEnvironment(): Promise<
  Stack & { folder: string; database(name: string): Promise<string> }
> {
  const folder = await realpath(await mkdtemp(path.join(os.tmpdir(), 'holdfast-bench-')));
  await chmod(folder, 0o711);
  const stack = await startStack({ folder, env: {}, terminal: createConsole() });
  await migrate(stack.databaseUrl);
  const url = (name: string) => stack.databaseUrl.replace(/[^/]+$/, name);
  return {
    ...stack,
    folder,
    /** Creates and migrates another database. Returns its URL. */
    async database(name) {
      await ensureDatabase({ url }, name);
      await migrate(url(name));
      return url(name);
    },
    async stop() {
      await stack.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export async function migrate(url: string): Promise<void> {
  const db = openDatabase({
    url,
    poolSize: 3,
    statementTimeoutMs: 0,
    log: createLog('silent', false),
  });
  await migrateUp(db);
  await db.destroy();
}

export type BenchProcess = { child: ChildProcess; ready: string; stop(): Promise<void> };

/** Starts a program and waits until its output matches `ready`. Returns the first group. */
export async function startProgram(
  args: readonly string[],
  env: Record<string, string>,
  ready: RegExp,
): Promise<BenchProcess> {
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const found = await new Promise<string>((resolve, reject) => {
    let output = '';
    const search = (chunk: Buffer) => {
      output += chunk.toString();
      const match = ready.exec(output);
      if (!match) return;
      // What follows is the log of hours: nobody reads it, and to search it would be most of the load.
      child.stdout.off('data', search).resume();
      resolve(match[1] ?? '');
    };
    child.stdout.on('data', search);
    void ended.then(() => reject(new Error(`${args.join(' ')} ended:\n${output}`)));
  });
  return {
    child,
    ready: found,
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

/** What each process of the product needs to know, for callers and endpoints on this machine. */
export const productEnv = ({
  temporalAddress,
  databaseUrl,
}: Pick<Stack, 'temporalAddress' | 'databaseUrl'>): Record<string, string> => ({
  HOLDFAST_TRUSTED_GATEWAYS: '127.0.0.0/8',
  HOLDFAST_OUTBOUND_ALLOW: '127.0.0.0/8',
  HOLDFAST_MASTER_KEYS: `bench:${Buffer.alloc(32, 1).toString('base64')}`,
  TEMPORAL_ADDRESS: temporalAddress,
  DATABASE_URL: databaseUrl,
});

/** Starts the whole product on the servers of a bench environment, with the defaults and `env`. */
export const startProduct = (
  servers: Pick<Stack, 'temporalAddress' | 'databaseUrl'>,
  nodeOptions: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
  ready = /"port":(\d+)[^]*the worker is polling/,
): Promise<BenchProcess> =>
  startProgram(
    [...nodeOptions, 'processes/main.ts'],
    {
      ...productEnv(servers),
      HOLDFAST_PORT: '0',
      HOLDFAST_LOG_LEVEL: 'info',
      ...env,
    },
    ready,
  );
