import knex, { type Knex } from 'knex';
import pg from 'pg';
import { currentConnectionUser } from '../../platform/connectionUser.ts';
import type { Log } from '../../platform/log.ts';
import { tenantActivity } from '../../platform/tenantActivity.ts';
import { createConnectionShares } from './connectionShares.ts';
import { groupStatements, type GroupingConnection } from './statementGroups.ts';

export type { Knex } from 'knex';

type Settings = {
  url: string;
  poolSize: number;
  statementTimeoutMs: number;
  log: Log;
  /** Limits of what a tenant may own, by quota; without them, connections enforce none. */
  quotaDefaults?: Readonly<Record<string, number>>;
};

/** A client of pg. Its `connection` reports each error that the server sends, before a query does. */
type PoolConnection = GroupingConnection & {
  connection: {
    on(event: 'errorMessage', report: (error: { severity?: string; code?: string }) => void): void;
  };
};

type CreatedConnection = (error: Error | null, connection: PoolConnection) => void;

/**
 * Connections that the server has terminated. A query that this interrupts fails before the socket
 * closes: until then the connection seems intact, and the next request would get it.
 */
const terminated = new WeakSet<PoolConnection>();

/** SQLSTATEs of a server that ends a session; the language of the severity is that of the server. */
const ENDS_SESSION = /^(57P0[1-5]|25P0[34])$/;

/** Prepares a new connection of the pool. */
const prepareConnection =
  (quotaDefaults: Settings['quotaDefaults']) =>
  (connection: PoolConnection, done: CreatedConnection): void => {
    connection.connection.on('errorMessage', ({ severity, code = '' }) => {
      if (severity === 'FATAL' || severity === 'PANIC' || ENDS_SESSION.test(code))
        terminated.add(connection);
    });
    groupStatements(connection);
    if (!quotaDefaults) return void done(null, connection);
    connection.query(
      "SELECT set_config('holdfast.quota_defaults', $1, false)",
      [JSON.stringify(quotaDefaults)],
      (error: Error | null) => done(error, connection),
    );
  };

/** `bigint` columns are counters far below 2^53, so they are read as numbers. */
pg.types.setTypeParser(pg.types.builtins.INT8, Number);

/**
 * Opens the connection pool. `statementTimeoutMs` limits each statement, 0 means no limit. Waiting
 * for a connection is limited, and TCP keep-alive detects a lost server after ten idle seconds.
 */
export const openDatabase = ({
  url,
  poolSize,
  statementTimeoutMs,
  log,
  quotaDefaults,
}: Settings): Knex =>
  knex({
    client: 'pg',
    connection: {
      connectionString: url,
      application_name: 'holdfast',
      connectionTimeoutMillis: 3_000,
      statement_timeout: statementTimeoutMs,
      idle_in_transaction_session_timeout: 30_000,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
    } as Knex.PgConnectionConfig,
    pool: {
      min: 0,
      max: poolSize,
      afterCreate: prepareConnection(quotaDefaults),
      validate: (connection: PoolConnection) => !terminated.has(connection),
    },
    acquireConnectionTimeout: 5_000,
    log: {
      warn: (message: unknown) => log.debug({ knex: String(message) }, 'database driver'),
      error: (message: unknown) => log.debug({ knex: String(message) }, 'database driver'),
      debug: () => undefined,
      deprecate: () => undefined,
    },
  });

/** The methods of Knex's client through which every query and transaction gets its connection. */
type PoolClient = {
  acquireConnection(): Promise<object>;
  releaseConnection(connection: object): Promise<void>;
};

/**
 * The same pool, shared between requests and background work and between tenants
 * (`connectionShares.ts`). No connection is held while something outside the database is awaited.
 */
export function openSharedDatabase(settings: Settings & { sharePercent: number }): Knex {
  const db = openDatabase(settings);
  const shares = createConnectionShares(settings.poolSize, settings.sharePercent);
  const releases = new WeakMap<object, () => void>();
  const client = db.client as PoolClient;
  const acquire = client.acquireConnection.bind(client);
  const release = client.releaseConnection.bind(client);
  client.acquireConnection = async () => {
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
  };
  client.releaseConnection = async (connection) => {
    const leave = releases.get(connection);
    releases.delete(connection);
    await release(connection);
    leave?.();
  };
  return db;
}

/** Resolves when the database answers. */
export const ping = async (db: Knex): Promise<void> => void (await db.raw('SELECT 1'));
