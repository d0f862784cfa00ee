import { setTimeout as sleep } from 'node:timers/promises';
import { isConnectionLimit } from '../../domain/shared/outage.ts';
import { currentConnectionUser } from '../../platform/connectionUser.ts';
import type { Log } from '../../platform/log.ts';
import type { PoolPart, PoolState } from '../../platform/metrics/databasePool.ts';
import { tenantActivity } from '../../platform/tenantActivity.ts';
import { createConnectionShares } from './connectionShares.ts';
import { openDatabase, type DatabaseSettings, type Knex } from './knex.ts';

/** What the metrics learn of the pool. */
export type PoolMetrics = {
  measurePool(read: () => PoolState): void;
  databaseWaitSeconds: { observe(labels: { part: PoolPart }, seconds: number): void };
  databaseRefusals: { inc(): void };
};

type Settings = DatabaseSettings & { sharePercent: number; waitMs: number; metrics: PoolMetrics };

/** The pool of Knex (tarn). */
type Pool = { numUsed(): number; numFree(): number; numPendingAcquires(): number };

/** The methods of Knex's client through which every query and transaction gets its connection. */
type PoolClient = {
  pool: Pool | undefined;
  acquireConnection(): Promise<object>;
  releaseConnection(connection: object): Promise<void>;
};

/** The first pause before PostgreSQL, which has refused a connection, is asked again; each is twice as long. */
const FIRST_PAUSE_MS = 100;

/** While PostgreSQL refuses connections the log says so this often. */
const LOG_EVERY_MS = 30_000;

/**
 * The pool, shared between requests and background work and between tenants (`connectionShares.ts`).
 * No connection is held while something outside the database is awaited. A connection that PostgreSQL
 * refuses because it has too many is asked for again, within `waitMs`.
 */
export function openSharedDatabase(settings: Settings): Knex {
  const { metrics, poolSize: max, waitMs } = settings;
  const db = openDatabase(settings);
  const shares = createConnectionShares(max, settings.sharePercent, waitMs);
  const releases = new WeakMap<object, () => void>();
  const client = db.client as PoolClient;
  const acquire = patiently(
    client.acquireConnection.bind(client),
    waitMs,
    reportRefusals(settings),
  );
  const release = client.releaseConnection.bind(client);

  async function take(): Promise<object> {
    const user = currentConnectionUser();
    if (!user) return acquire();
    tenantActivity.note(user.key);
    const taken = await shares.take(user, acquire);
    const [since, restedMs] = [performance.now(), user.restedMs];
    releases.set(taken.connection, () => {
      user.onUsed?.(performance.now() - since - (user.restedMs - restedMs));
      taken.release();
    });
    return taken.connection;
  }

  client.acquireConnection = async () => {
    const part = currentConnectionUser()?.part ?? 'process';
    const startedAt = performance.now();
    try {
      return await take();
    } finally {
      metrics.databaseWaitSeconds.observe({ part }, (performance.now() - startedAt) / 1_000);
    }
  };
  client.releaseConnection = async (connection) => {
    const leave = releases.get(connection);
    releases.delete(connection);
    await release(connection);
    leave?.();
  };
  metrics.measurePool(() => ({
    used: client.pool?.numUsed() ?? 0,
    idle: client.pool?.numFree() ?? 0,
    max,
    waiting: { ...shares.waiting(), process: client.pool?.numPendingAcquires() ?? 0 },
  }));
  return db;
}

/**
 * Repeats `acquire` while PostgreSQL refuses connections: those that it has end soon, as in a rolling
 * restart. Error: the last one, after `waitMs`.
 */
function patiently<T>(
  acquire: () => Promise<T>,
  waitMs: number,
  onRefused: (error: unknown) => void,
): () => Promise<T> {
  return async () => {
    const deadline = performance.now() + waitMs;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs *= 2) {
      try {
        return await acquire();
      } catch (error) {
        if (!isConnectionLimit(error)) throw error;
        onRefused(error);
        const restMs = pauseMs * (0.5 + Math.random());
        if (performance.now() + restMs > deadline) throw error;
        await sleep(restMs);
      }
    }
  };
}

/** Counts refused connections, and says in the log that there are some. */
function reportRefusals({ log, metrics }: { log: Log; metrics: PoolMetrics }) {
  let loggedAt = -Infinity;
  let refused = 0;
  return (error: unknown): void => {
    metrics.databaseRefusals.inc();
    refused += 1;
    if (performance.now() - loggedAt < LOG_EVERY_MS) return;
    log.warn(
      { code: 'no_database_connection', refused, err: error },
      'PostgreSQL refuses connections because it has too many; raise max_connections, or lower ' +
        'HOLDFAST_DATABASE_POOL (docs/deployment.md#connections)',
    );
    [loggedAt, refused] = [performance.now(), 0];
  };
}
