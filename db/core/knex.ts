import knex, { type Knex } from 'knex';
import pg from 'pg';
import type { Log } from '../../platform/log.ts';

export type { Knex } from 'knex';

type Settings = { url: string; poolSize: number; statementTimeoutMs: number; log: Log };

/** `bigint` columns are counters far below 2^53; as numbers they stay numbers in JSON. */
pg.types.setTypeParser(pg.types.builtins.INT8, Number);

/**
 * The connection pool. A statement may not outlive `statementTimeoutMs`, waiting for a connection is bounded,
 * and a server that is cut off is looked for after ten idle seconds.
 */
export const openDatabase = ({ url, poolSize, statementTimeoutMs, log }: Settings): Knex =>
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
    pool: { min: 0, max: poolSize },
    acquireConnectionTimeout: 5_000,
    log: {
      warn: (message: unknown) => log.debug({ knex: String(message) }, 'database driver'),
      error: (message: unknown) => log.debug({ knex: String(message) }, 'database driver'),
      debug: () => undefined,
      deprecate: () => undefined,
    },
  });
