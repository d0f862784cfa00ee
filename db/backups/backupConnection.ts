import type { Socket } from 'node:net';
import pg from 'pg';
import { openingConnection } from '../../domain/shared/driverError.ts';
import { noticeLostClient } from '../core/lostClients.ts';

export type BackupConnection = pg.Client;

/**
 * Settings under which the text of a value does not depend on the server, and tables are read in
 * their physical order. Pauses have no limit: the transaction of a snapshot is idle while others read it, and
 * a COPY waits for a slow store.
 */
const CONNECTION_SETTINGS = `
  SET statement_timeout = 0;
  SET idle_in_transaction_session_timeout = 0;
  ${noticeLostClient('SESSION')};
  SET timezone = 'UTC';
  SET datestyle = 'ISO';
  SET intervalstyle = 'postgres';
  SET bytea_output = 'hex';
  SET extra_float_digits = 1;
  SET client_encoding = 'UTF8';
  SET synchronize_seqscans = off;
  SET max_parallel_workers_per_gather = 0;
  SET jit = off;
`;

/**
 * Runs `use` with a connection outside the pool, for work that takes longer than a request may. The
 * connection is closed when `use` returns or `signal` aborts; in the second case the server cancels
 * the running statement.
 */
export async function withBackupConnection<T>(
  url: string,
  signal: AbortSignal,
  use: (connection: BackupConnection) => Promise<T>,
  createSocket?: () => Socket,
): Promise<T> {
  signal.throwIfAborted();
  const connection = new pg.Client({
    connectionString: url,
    application_name: 'holdfast-backup',
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
    ...(createSocket && { stream: createSocket }),
  });
  // The statement that uses a broken connection reports the error.
  connection.on('error', () => undefined);
  const close = () => void connection.end().catch(() => undefined);
  signal.addEventListener('abort', close, { once: true });
  try {
    await openingConnection(async () => {
      await connection.connect();
      await connection.query(CONNECTION_SETTINGS);
    });
    return await use(connection);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener('abort', close);
    await connection.end().catch(() => undefined);
  }
}

type ConnectionsOptions = { signal: AbortSignal; count: number; createSocket?: () => Socket };

/** Runs `use` with several connections, as `withBackupConnection` does with one. */
export async function withBackupConnections<T>(
  url: string,
  { count, ...options }: ConnectionsOptions,
  use: (connections: readonly [BackupConnection, ...BackupConnection[]]) => Promise<T>,
): Promise<T> {
  return withBackupConnection(
    url,
    options.signal,
    (connection) =>
      count <= 1
        ? use([connection])
        : withBackupConnections(url, { ...options, count: count - 1 }, (others) =>
            use([connection, ...others]),
          ),
    options.createSocket,
  );
}
