/**
 * Settings by which PostgreSQL notices within a minute that the machine of a client is lost, and ends its
 * session with its locks. By default the operating system waits for two hours. `scope`: `LOCAL` until the
 * transaction ends.
 */
export const noticeLostClient = (scope: 'LOCAL' | 'SESSION'): string =>
  `SET ${scope} client_connection_check_interval = '2s';
   SET ${scope} tcp_keepalives_idle = 20;
   SET ${scope} tcp_keepalives_interval = 10;
   SET ${scope} tcp_keepalives_count = 3`;

/** How long a transaction waits for the next statement of a client that may have stopped, in milliseconds. */
export const MAX_IDLE_MS = 60_000;

/**
 * The same for a transaction whose statements may take long: it ends, too, when its client has stopped between
 * two of them, or does not read what it has asked for.
 */
export const limitPauses = (idleMs = MAX_IDLE_MS): string =>
  `${noticeLostClient('LOCAL')};
   SET LOCAL tcp_user_timeout = ${MAX_IDLE_MS};
   SET LOCAL idle_in_transaction_session_timeout = ${idleMs}`;
