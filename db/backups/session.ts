import pg from 'pg';

export type Session = pg.Client;

/** Values are written the same way wherever the server stands, and rows in the order in which they lie. */
const SETTINGS = `
  SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET client_connection_check_interval = '2s';
  SET timezone = 'UTC'; SET datestyle = 'ISO'; SET intervalstyle = 'postgres'; SET bytea_output = 'hex'; SET extra_float_digits = 1;
  SET client_encoding = 'UTF8'; SET synchronize_seqscans = off; SET max_parallel_workers_per_gather = 0;
`;

/**
 * A connection beside the pool, for work that takes longer than a request may. It is closed when `use` has ended, or at
 * once when `signal` aborts; the server then ends what it was at.
 */
export async function withSession<T>(
  url: string,
  signal: AbortSignal,
  use: (session: Session) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const session = new pg.Client({
    connectionString: url,
    application_name: 'holdfast-backup',
    connectionTimeoutMillis: 5_000,
    keepAlive: true,
  });
  // A connection that breaks is met by the statement that uses it.
  session.on('error', () => undefined);
  const close = () => void session.end().catch(() => undefined);
  signal.addEventListener('abort', close, { once: true });
  try {
    await session.connect();
    await session.query(SETTINGS);
    return await use(session);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener('abort', close);
    await session.end().catch(() => undefined);
  }
}
