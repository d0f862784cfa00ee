import { Counter, Gauge, Histogram, type Registry } from '@prometheus-io/client';

/** For whom a connection is asked for: a request, background work of a tenant, or the process itself. */
export type PoolPart = 'requests' | 'background' | 'process';

export type PoolState = {
  used: number;
  idle: number;
  max: number;
  waiting: Readonly<Record<PoolPart, number>>;
};

/** What PostgreSQL accepts, and what the installation may open. */
export type ConnectionNeeds = { needed: number; usable: number };

/** Registers the gauges of the pool. Returns what sets how its state is read. */
function poolGauges(registers: Registry[]): (read: () => PoolState) => void {
  let read: (() => PoolState) | undefined;
  new Gauge({
    name: 'holdfast_database_connections',
    help: 'Connections of the pool of this process, by state (used, idle).',
    labelNames: ['state'] as const,
    registers,
    collect() {
      const state = read?.();
      if (!state) return;
      this.set({ state: 'used' }, state.used);
      this.set({ state: 'idle' }, state.idle);
    },
  });
  new Gauge({
    name: 'holdfast_database_connections_max',
    help: 'Size of the pool of this process (HOLDFAST_DATABASE_POOL).',
    registers,
    collect() {
      const state = read?.();
      if (state) this.set(state.max);
    },
  });
  new Gauge({
    name: 'holdfast_database_waiting',
    help: 'Who waits for a connection of the pool now, by part (requests, background, process).',
    labelNames: ['part'] as const,
    registers,
    collect() {
      for (const [part, waiting] of Object.entries(read?.().waiting ?? {}))
        this.set({ part }, waiting);
    },
  });
  return (reader) => void (read = reader);
}

/** Registers the gauges of the budget of connections. Returns what sets them. */
function budgetGauges(registers: Registry[]): (needs: ConnectionNeeds) => void {
  const needed = new Gauge({
    name: 'holdfast_database_connections_needed',
    help: 'Connections that all processes of the installation and the other users of PostgreSQL may open.',
    registers,
  });
  const usable = new Gauge({
    name: 'holdfast_database_connections_usable',
    help: 'Connections that PostgreSQL accepts: max_connections without the reserved ones.',
    registers,
  });
  return (needs) => {
    needed.set(needs.needed);
    usable.set(needs.usable);
  };
}

/** Registers the metrics of database connections. */
export const databasePoolMetrics = (registers: Registry[]) => ({
  /** Sets how the state of the pool is read when the metrics are. */
  measurePool: poolGauges(registers),
  setConnectionNeeds: budgetGauges(registers),
  databaseWaitSeconds: new Histogram({
    name: 'holdfast_database_wait_seconds',
    help: 'Time until a connection was there, by part (requests, background, process).',
    labelNames: ['part'] as const,
    buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    registers,
  }),
  databaseRefusals: new Counter({
    name: 'holdfast_database_connections_refused_total',
    help: 'Connections that PostgreSQL refused because it has too many.',
    registers,
  }),
});
