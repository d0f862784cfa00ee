/**
 * SQLSTATE and socket codes after which the same statement may succeed: PostgreSQL is down or busy.
 */
const OUTAGE_CODES =
  /^(08|57P|53|55P03|57014|40001|40P01)|^(ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN)$/;

/** Drivers report some lost connections by message only. */
const OUTAGE_MESSAGES =
  /Connection (terminated|ended)|timeout expired|connection timeout|connection error|Transaction query already complete/i;

/**
 * True when the database could not be reached, or refused to answer for now, so that a retry may
 * succeed without any change. `error` is what Knex or Objection threw.
 */
export function isOutage(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false;
  const { nativeError } = error as { nativeError?: object };
  const { code, message, name } = (nativeError ?? error) as Partial<Error> & { code?: unknown };
  if (typeof code === 'string' && OUTAGE_CODES.test(code)) return true;
  return name === 'KnexTimeoutError' || OUTAGE_MESSAGES.test(message ?? '');
}
