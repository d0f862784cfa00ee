import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import net from 'node:net';
import { startChild, waitUntilUp, type Child } from './child.ts';

export type TemporalServer = {
  /** Host and port of the gRPC frontend. */
  address: string;
  uiPort: number;
  child: Child;
  stop(): Promise<void>;
};

/** A busy machine may need minutes; a server that ends is noticed immediately. */
const START_LIMIT_MS = 300_000;
const STOP_GRACE_MS = 15_000;

/** Settings that make the development server fast enough; docs/benchmarks.md has the numbers. */
const PRAGMAS = ['journal_mode=WAL', 'synchronous=NORMAL'];
const DYNAMIC_CONFIG = {
  'system.enableActivityEagerExecution': true,
  'matching.numTaskqueueReadPartitions': 1,
  'matching.numTaskqueueWritePartitions': 1,
};
const FAIRNESS = { 'matching.enableFairness': true };

type TemporalServerOptions = {
  /** Path of the `temporal` program. */
  binary: string;
  /** SQLite file with the server's state. */
  dbFile: string;
  port: number;
  uiPort: number;
  logFile: string;
  onSpawn?(pid: number): Promise<void>;
  signal?: AbortSignal;
};

const noop = () => Promise.resolve();

/**
 * Starts Temporal's development server on loopback and waits until it accepts connections.
 * Errors: it ends or does not answer; the reason of `signal`. The server does not run then.
 */
export async function startTemporal({
  binary,
  dbFile,
  port,
  uiPort,
  logFile,
  onSpawn = noop,
  signal,
}: TemporalServerOptions): Promise<TemporalServer> {
  const options = {
    '--ip': '127.0.0.1',
    '--port': String(port),
    '--ui-port': String(uiPort),
    '--db-filename': dbFile,
    '--log-level': 'error',
  };
  const args = [
    'server',
    'start-dev',
    ...Object.entries(options).flat(),
    ...PRAGMAS.flatMap((pragma) => ['--sqlite-pragma', pragma]),
    ...Object.entries({ ...DYNAMIC_CONFIG, ...((await isFair(dbFile)) && FAIRNESS) }).flatMap(
      ([name, value]) => ['--dynamic-config-value', `${name}=${value}`],
    ),
  ];
  signal?.throwIfAborted();
  const child = await startChild(binary, args, { logFile, stopSignal: 'SIGTERM', onSpawn });
  await waitUntilUp(child, {
    name: 'Temporal',
    logFile,
    limitMs: START_LIMIT_MS,
    check: () => connectTo(port),
    signal,
  });
  return {
    address: `127.0.0.1:${port}`,
    uiPort,
    child,
    stop: () => child.stop(STOP_GRACE_MS),
  };
}

const connectTo = (port: number) =>
  new Promise<void>((resolve, reject) => {
    const socket = net.connect({ host: '127.0.0.1', port }, () => {
      socket.destroy();
      resolve();
    });
    socket.once('error', reject);
  });

/**
 * True for a file whose queues have been fair from the beginning. Fair queues are kept in another
 * table, and version 1.29 does not move what waits in the old one: an older file keeps its queues.
 */
async function isFair(dbFile: string): Promise<boolean> {
  const marker = `${dbFile}.fair`;
  if (!existsSync(dbFile)) await writeFile(marker, '');
  return existsSync(marker);
}
