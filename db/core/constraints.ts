/** True when PostgreSQL refused a row because another one has its key (SQLSTATE 23505). */
export const isUniqueViolation = (error: unknown): boolean => sqlState(error) === '23505';

/** True when PostgreSQL refused a row because what it refers to is not there (SQLSTATE 23503). */
export const isForeignKeyViolation = (error: unknown): boolean => sqlState(error) === '23503';

/** True when a lock could not be had in the time that was given for it (SQLSTATE 55P03). */
export const isLockTimeout = (error: unknown): boolean => sqlState(error) === '55P03';

/** True when somebody else had what was needed, for too long (SQLSTATE 55P03, 40P01, 57014). */
export const isBusy = (error: unknown): boolean =>
  isLockTimeout(error) || sqlState(error) === '40P01' || sqlState(error) === '57014';

/** A record was changed by another transaction after it had been read. */
export class Raced extends Error {}

/**
 * True when a constraint or a lock stood against a transaction that had been checked beforehand: another one was
 * quicker, and the same again will see what it did.
 */
export const isRaced = (error: unknown): boolean =>
  error instanceof Raced || RACED.has(String(sqlState(error)));
const RACED: ReadonlySet<string> = new Set(['23505', '23503', '23514', '23P01', '40P01', '40001']);

function sqlState(error: unknown): unknown {
  const { code, nativeError } = error as { code?: unknown; nativeError?: { code?: unknown } };
  return nativeError?.code ?? code;
}
