import { setTimeout as sleep } from 'node:timers/promises';
import type { KilledProcess } from '../kills/processes.ts';

/** A server that other processes keep using when it comes back at the same address. */
export type Server = { stop(): Promise<void>; start(): Promise<void> };

type Disturbed = {
  apis: readonly KilledProcess[];
  workers: readonly KilledProcess[];
  postgres: Server;
  temporal: Server;
};

/** Something that happens to an installation; it ends when the installation may work again. */
export type Disturbance = { name: string; happen(): Promise<void> | undefined };

/** Longer than a probe, a heartbeat or a lease of a short step. */
const FROZEN_MS = 8_000;
/** Between the processes of a rolling restart: a new one is ready by then. */
const ROLLING_MS = 6_000;
const RESTART_MS = 500;
const AWAY_MS = 30_000;

const oneOf = <T>(values: readonly T[]): T | undefined =>
  values[Math.floor(Math.random() * values.length)];

async function freeze(processes: readonly KilledProcess[]): Promise<void> {
  const frozen = oneOf(processes);
  frozen?.signal('SIGSTOP');
  await sleep(FROZEN_MS);
  frozen?.signal('SIGCONT');
}

async function restartAll(processes: readonly KilledProcess[]): Promise<void> {
  for (const each of processes) {
    each.signal('SIGTERM');
    await sleep(ROLLING_MS);
  }
}

async function restart(server: Server, awayMs: number): Promise<void> {
  await server.stop();
  await sleep(awayMs);
  await server.start();
}

/** One of each kind, in the order in which they happen. */
export const disturbancesOf = ({ apis, workers, postgres, temporal }: Disturbed): Disturbance[] => [
  { name: 'kill -9 of an API', happen: () => void oneOf(apis)?.kill() },
  { name: 'kill -9 of a worker', happen: () => void oneOf(workers)?.kill() },
  { name: 'rolling restart of the APIs', happen: () => restartAll(apis) },
  { name: 'rolling restart of the workers', happen: () => restartAll(workers) },
  { name: 'SIGSTOP of an API', happen: () => freeze(apis) },
  { name: 'SIGSTOP of a worker', happen: () => freeze(workers) },
  { name: 'restart of Temporal', happen: () => restart(temporal, RESTART_MS) },
  { name: 'restart of PostgreSQL', happen: () => restart(postgres, RESTART_MS) },
  { name: 'kill -9 of all processes', happen: () => killAll([...apis, ...workers]) },
  { name: 'PostgreSQL away for 30 s', happen: () => restart(postgres, AWAY_MS) },
];

function killAll(processes: readonly KilledProcess[]): undefined {
  for (const each of processes) each.kill();
}
