/** True when PostgreSQL refused a row because another one has its key (SQLSTATE 23505). */
export const isUniqueViolation = (error: unknown): boolean => sqlState(error) === '23505';

/** True when PostgreSQL refused a row because what it refers to is not there (SQLSTATE 23503). */
export const isForeignKeyViolation = (error: unknown): boolean => sqlState(error) === '23503';

function sqlState(error: unknown): unknown {
  const { code, nativeError } = error as { code?: unknown; nativeError?: { code?: unknown } };
  return nativeError?.code ?? code;
}
