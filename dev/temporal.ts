import net from 'node:net';
import { startChild, waitUntilUp, type Child } from './child.ts';

export type TemporalServer = {
  address: string;
  uiPort: number;
  child: Child;
  stop(): Promise<void>;
};

const START_LIMIT_MS = 60_000;
const STOP_GRACE_MS = 15_000;

/** What makes the dev server fast enough; each was measured, see docs/benchmarks.md. */
const PRAGMAS = ['journal_mode=WAL', 'synchronous=NORMAL'];
const DYNAMIC_CONFIG = {
  'system.enableActivityEagerExecution': true,
  'matching.numTaskqueueReadPartitions': 1,
  'matching.numTaskqueueWritePartitions': 1,
};

type Settings = {
  binary: string;
  dbFile: string;
  port: number;
  uiPort: number;
  logFile: string;
  onSpawn?(pid: number): Promise<void>;
};

const nobody = () => Promise.resolve();

/** Starts Temporal's development server, its state in `dbFile`, listening on loopback. */
export async function startTemporal({
  binary,
  dbFile,
  port,
  uiPort,
  logFile,
  onSpawn = nobody,
}: Settings): Promise<TemporalServer> {
  const args = [
    'server',
    'start-dev',
    '--ip',
    '127.0.0.1',
    '--port',
    String(port),
    '--ui-port',
    String(uiPort),
    '--db-filename',
    dbFile,
    '--log-level',
    'error',
    ...PRAGMAS.flatMap((pragma) => ['--sqlite-pragma', pragma]),
    ...Object.entries(DYNAMIC_CONFIG).flatMap(([name, value]) => [
      '--dynamic-config-value',
      `${name}=${value}`,
    ]),
  ];
  const child = await startChild(binary, args, { logFile, onSpawn });
  await waitUntilUp('Temporal', child, logFile, START_LIMIT_MS, () => connectable(port));
  return {
    address: `127.0.0.1:${port}`,
    uiPort,
    child,
    stop: () => child.stop('SIGTERM', STOP_GRACE_MS),
  };
}

const connectable = (port: number) =>
  new Promise<void>((resolve, reject) => {
    const socket = net.connect({ host: '127.0.0.1', port }, () => {
      socket.destroy();
      resolve();
    });
    socket.once('error', reject);
  });
