import { driverErrorOf } from './driverError.ts';

/**
 * SQLSTATE and socket codes after which the same statement may succeed: PostgreSQL is down, busy or, after
 * a failover, a standby that only reads (25006), or it has ended a transaction that took too long (25P03, 25P04).
 */
const OUTAGE_CODES = new RegExp(
  '^(08|57P|53|55P03|57014|40001|40P01|25006|25P0[34])|' +
    '^(ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|EHOSTDOWN|ENETUNREACH|ENETDOWN)$',
);

/** Drivers report some lost connections by message only. */
const OUTAGE_MESSAGES =
  /Connection (terminated|ended)|timeout expired|connection timeout|connection error|Transaction query already complete/i;

/** What PostgreSQL, and PgBouncer before it, say when they accept no further connection. */
const NO_CONNECTION_MESSAGES =
  /too many (clients|connections)|remaining connection slots|no more connections allowed/i;

/** True when PostgreSQL runs, but accepts no further connection (SQLSTATE 53300). */
export function isConnectionLimit(error: unknown): boolean {
  const { code, message } = driverErrorOf(error);
  return code === '53300' || (code === '08P01' && NO_CONNECTION_MESSAGES.test(message ?? ''));
}

/** True when a statement needs more disk, memory or temporary files than PostgreSQL has for it (class 53). */
export const isOutOfResources = (error: unknown): boolean =>
  /^53[124]00$/.test(String(driverErrorOf(error).code));

/** True when no connection of the pool of this process became free in time. */
export const isPoolBusy = (error: unknown): boolean =>
  driverErrorOf(error).name === 'KnexTimeoutError';

/** True when the error itself says that a retry may succeed. */
function saysOutage(error: unknown): boolean {
  if (error instanceof AggregateError && error.errors.length > 0)
    return error.errors.every((each) => saysOutage(each));
  const { code, message } = driverErrorOf(error);
  if (typeof code === 'string' && OUTAGE_CODES.test(code)) return true;
  return isPoolBusy(error) || OUTAGE_MESSAGES.test(message ?? '');
}

/** True when no connection could be opened: the server cannot be reached, or refuses the client. */
export const isConnectFailure = (error: unknown): boolean =>
  driverErrorOf(error).isConnectFailure === true;

/**
 * True when the database could not be reached, refused the client, or refused to answer for now, so that a
 * retry may succeed without any change: a password, a role or a certificate that is replaced is wrong for a
 * moment. `error` is what Knex or Objection threw, or several of these.
 */
export const isOutage = (error: unknown): boolean => isConnectFailure(error) || saysOutage(error);

/** True when a server that runs refused the client, such as its password: what is configured may be wrong. */
export const isClientRefused = (error: unknown): boolean =>
  isConnectFailure(error) && !saysOutage(error);
