/** True when PostgreSQL refused a row because another one has its key (SQLSTATE 23505). */
export const isUniqueViolation = (error: unknown): boolean => sqlState(error) === '23505';

/** True when PostgreSQL refused a row because what it refers to is not there (SQLSTATE 23503). */
export const isForeignKeyViolation = (error: unknown): boolean => sqlState(error) === '23503';

/** True when a lock could not be had in the time that was given for it (SQLSTATE 55P03). */
export const isLockTimeout = (error: unknown): boolean => sqlState(error) === '55P03';

function sqlState(error: unknown): unknown {
  const { code, nativeError } = error as { code?: unknown; nativeError?: { code?: unknown } };
  return nativeError?.code ?? code;
}
