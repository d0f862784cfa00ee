import { rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { TerminalConsole } from './console.ts';
import { freePort } from './freePort.ts';
import {
  forgetServers,
  recordServers,
  stopOrphans,
  type ServerProcess,
} from './orphanProcesses.ts';
import { ensureDatabase, startPostgres } from './postgres.ts';
import { startTemporal } from './temporal.ts';
import { temporalBinary } from './temporalBinary.ts';

export type Stack = {
  databaseUrl: string;
  temporalAddress: string;
  /** URL of Temporal's Web UI, if Temporal is embedded. */
  temporalUi: string | undefined;
  /** Resolves with a message when one of the servers ends without being stopped. */
  failed: Promise<string>;
  /** Records a further process of the data folder, which the next start stops if this one is killed. */
  recordServer(server: ServerProcess): Promise<void>;
  /** Stops the servers that were started. Later calls return the same promise. */
  stop(): Promise<void>;
};

type StackSettings = {
  folder: string;
  /** `DATABASE_URL` and `TEMPORAL_ADDRESS` name servers that are used instead of embedded ones. */
  env: NodeJS.ProcessEnv;
  terminal: TerminalConsole;
  signal?: AbortSignal;
};

/** File with the process ids of the servers of a data folder. */
export const serverRecordFile = (folder: string): string => path.join(folder, 'servers.json');

/** File with the address of the Temporal of a running stack, for commands on this machine. */
export const temporalAddressFile = (folder: string): string =>
  path.join(folder, 'temporal.address');

const PORTS = { postgres: 5_433, temporal: 7_233, temporalUi: 8_233 };

/**
 * Starts PostgreSQL and Temporal on this machine, except those that `env` names. Errors: a server
 * cannot be started; the reason of `signal`. No server is left running then.
 */
export async function startStack({
  folder,
  env,
  terminal,
  signal = new AbortController().signal,
}: StackSettings): Promise<Stack> {
  const recordFile = serverRecordFile(folder);
  const orphans = await stopOrphans(recordFile, folder);
  if (orphans.length > 0) {
    terminal.line(`Stopped servers that an earlier start had left running: ${orphans.join(', ')}.`);
  }

  const resources = new AsyncDisposableStack();
  resources.defer(() => forgetServers(recordFile));
  // When one server fails to start, waiting for the other one is pointless.
  const failure = new AbortController();
  const context: StartContext = {
    folder,
    env,
    terminal,
    resources,
    signal: AbortSignal.any([signal, failure.signal]),
    recordServer: createRecorder(recordFile),
  };
  const abortOther = (error: unknown) => {
    failure.abort(error);
    throw error;
  };
  const [postgres, temporal] = await Promise.allSettled([
    startPostgresIfNeeded(context).catch(abortOther),
    startTemporalIfNeeded(context).catch(abortOther),
  ]);
  if (postgres.status === 'rejected' || temporal.status === 'rejected') {
    await resources.disposeAsync();
    signal.throwIfAborted();
    throw failure.signal.reason;
  }
  const addressFile = temporalAddressFile(folder);
  resources.defer(() => rm(addressFile, { force: true }));
  await writeFile(addressFile, temporal.value.address);
  let stopped: Promise<void> | undefined;
  return {
    databaseUrl: postgres.value.url,
    temporalAddress: temporal.value.address,
    temporalUi: temporal.value.ui,
    failed: Promise.race([postgres.value.ended, temporal.value.ended]),
    recordServer: context.recordServer,
    stop: () => (stopped ??= resources.disposeAsync()),
  };
}

type StartContext = {
  folder: string;
  env: NodeJS.ProcessEnv;
  terminal: TerminalConsole;
  resources: AsyncDisposableStack;
  signal: AbortSignal;
  recordServer(server: ServerProcess): Promise<void>;
};

/** Both servers start at the same time: writes of the file follow each other. */
function createRecorder(file: string): StartContext['recordServer'] {
  const servers: ServerProcess[] = [];
  let written = Promise.resolve();
  return (server) => {
    servers.push(server);
    const snapshot = [...servers];
    written = written.then(() => recordServers(file, snapshot));
    return written;
  };
}

const never = new Promise<never>(() => undefined);

async function startPostgresIfNeeded({
  folder,
  env,
  resources,
  signal,
  recordServer,
}: StartContext) {
  if (env.DATABASE_URL) return { url: env.DATABASE_URL, ended: never };
  const logFile = path.join(folder, 'postgres.log');
  const start = async () =>
    startPostgres({
      dataDir: path.join(folder, 'postgres'),
      port: await freePort(PORTS.postgres),
      logFile,
      onSpawn: (pid) => recordServer({ name: 'PostgreSQL', pid, signal: 'SIGINT' }),
      signal,
    });
  const server = await retryOnce(start, signal);
  resources.defer(() => server.stop());
  await ensureDatabase(server, 'holdfast');
  const ended = server.child.ended.then((how) => `PostgreSQL ${how}; see ${logFile}`);
  return { url: server.url('holdfast'), ended };
}

async function startTemporalIfNeeded({
  folder,
  env,
  terminal,
  resources,
  signal,
  recordServer,
}: StartContext) {
  if (env.TEMPORAL_ADDRESS) return { address: env.TEMPORAL_ADDRESS, ui: undefined, ended: never };
  const binary = await temporalBinary(terminal, signal);
  const logFile = path.join(folder, 'temporal.log');
  const start = async () =>
    startTemporal({
      binary,
      logFile,
      dbFile: path.join(folder, 'temporal.db'),
      port: await freePort(PORTS.temporal),
      uiPort: await freePort(PORTS.temporalUi),
      onSpawn: (pid) => recordServer({ name: 'Temporal', pid, signal: 'SIGTERM' }),
      signal,
    });
  const server = await retryOnce(start, signal);
  resources.defer(() => server.stop());
  const ended = server.child.ended.then((how) => `Temporal ${how}; see ${logFile}`);
  return { address: server.address, ui: `http://127.0.0.1:${server.uiPort}`, ended };
}

/**
 * Another program may take a port between the check and the start: the second attempt uses others.
 */
async function retryOnce<T>(start: () => Promise<T>, signal: AbortSignal): Promise<T> {
  return start().catch((error: unknown) => {
    if (signal.aborted) throw error;
    return start();
  });
}
