import knex, { type Knex } from 'knex';
import pg from 'pg';
import { asConnectFailure, openingConnection } from '../../domain/shared/driverError.ts';
import type { Log } from '../../platform/log.ts';
import { limitSilence } from './answerLimit.ts';
import { groupStatements, type GroupingConnection } from './statementGroups.ts';

export type { Knex } from 'knex';

export type DatabaseSettings = {
  url: string;
  poolSize: number;
  statementTimeoutMs: number;
  log: Log;
  /** How long to wait for a free connection of the pool. */
  waitMs?: number;
  /** Limits of what a tenant may own, by quota; without them, connections enforce none. */
  quotaDefaults?: Readonly<Record<string, number>>;
  /** How much later than the limit of a statement its answer may come. */
  answerMarginMs?: number;
};

/** A client of pg. Its `connection` reports each error that the server sends, before a query does. */
type PoolConnection = GroupingConnection &
  Parameters<typeof limitSilence>[0] & {
    connection: {
      on(
        event: 'errorMessage',
        report: (error: { severity?: string; code?: string }) => void,
      ): void;
    };
  };

type CreatedConnection = (error: Error | null, connection: PoolConnection) => void;

/**
 * Connections that the server has terminated, and those to a server that only reads. A query that a
 * termination interrupts fails before the socket closes: until then the connection seems intact, and the next
 * request would get it. A primary that has become a standby keeps its connections; a new one may reach the new primary.
 */
const unusable = new WeakSet<PoolConnection>();

/** SQLSTATEs of a server that ends a session; the language of the severity is that of the server. */
const ENDS_SESSION = /^(57P0[1-5]|25P0[34])$/;

/** SQLSTATE of a write that a server refuses because it only reads. */
const READ_ONLY = '25006';

const PAUSE_LIMIT_MS = 30_000;

/**
 * What the sessions of a pool set. A pooler refuses settings that come with the login, or ignores them, and the
 * driver does not send 0, for which the default of the role would then count.
 */
const sessionSettings = ({ statementTimeoutMs, quotaDefaults }: DatabaseSettings) => ({
  statement_timeout: String(statementTimeoutMs),
  idle_in_transaction_session_timeout: String(PAUSE_LIMIT_MS),
  ...(quotaDefaults && { 'holdfast.quota_defaults': JSON.stringify(quotaDefaults) }),
});

/** Prepares a new connection of the pool. */
const prepareConnection =
  (settings: DatabaseSettings) =>
  (connection: PoolConnection, done: CreatedConnection): void => {
    connection.connection.on('errorMessage', ({ severity, code = '' }) => {
      const endsSession = severity === 'FATAL' || severity === 'PANIC' || ENDS_SESSION.test(code);
      if (endsSession || code === READ_ONLY) unusable.add(connection);
    });
    groupStatements(
      connection,
      limitSilence(connection, settings.statementTimeoutMs, settings.answerMarginMs),
    );
    connection.query(
      'SELECT set_config(key, value, false) FROM json_each_text($1)',
      [JSON.stringify(sessionSettings(settings))],
      (error: Error | null) => done(error && asConnectFailure(error), connection),
    );
  };

const DEFAULT_WAIT_MS = 5_000;

/** `bigint` columns are counters far below 2^53, so they are read as numbers. */
pg.types.setTypeParser(pg.types.builtins.INT8, Number);

/**
 * Opens the connection pool. `statementTimeoutMs` limits each statement, 0 means no limit. Waiting
 * for a connection is limited. TCP keep-alive detects a lost server on idle connections, and `limitSilence` on
 * those that wait for an answer.
 */
export function openDatabase(settings: DatabaseSettings): Knex {
  const { url, poolSize, log, waitMs = DEFAULT_WAIT_MS } = settings;
  const db = knex({
    client: 'pg',
    connection: {
      connectionString: url,
      application_name: 'holdfast',
      connectionTimeoutMillis: 3_000,
      keepAlive: true,
      keepAliveInitialDelayMillis: 10_000,
    } as Knex.PgConnectionConfig,
    pool: {
      min: 0,
      max: poolSize,
      afterCreate: prepareConnection(settings),
      validate: (connection: PoolConnection) => !unusable.has(connection),
    },
    acquireConnectionTimeout: waitMs,
    // Knex would write values over the question marks of operators.
    compileSqlOnError: false,
    log: {
      warn: (message: unknown) => log.debug({ knex: String(message) }, 'database driver'),
      error: (message: unknown) => log.debug({ knex: String(message) }, 'database driver'),
      debug: () => undefined,
      deprecate: () => undefined,
    },
  });
  const client = db.client as { acquireRawConnection(): Promise<object> };
  const connect = client.acquireRawConnection.bind(client);
  client.acquireRawConnection = () => openingConnection(connect);
  // For the log, which leaves out messages that quote values.
  db.on('query-error', (error: object, { sql }: { sql: string }) => {
    Object.assign(error, { statement: sql });
  });
  return db;
}

/** Fails as a write does on a server that only reads, and costs no transaction id. */
export const REQUIRE_WRITABLE = `DO $$ BEGIN
  IF current_setting('transaction_read_only')::bool THEN
    RAISE EXCEPTION 'PostgreSQL only reads' USING ERRCODE = '${READ_ONLY}';
  END IF;
END $$`;

/** Resolves when the database answers and takes writes. */
export const ping = async (db: Knex): Promise<void> => void (await db.raw(REQUIRE_WRITABLE));
