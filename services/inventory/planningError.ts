import { isOutage } from '../../domain/shared/outage.ts';

/** The code of an error, or of that of the driver, which Objection wraps. */
function codeOf(error: Error): unknown {
  const { code, nativeError } = error as { code?: unknown; nativeError?: { code?: unknown } };
  return nativeError?.code ?? code;
}

/**
 * True for an unexpected failure of planning, which concerns what was planned. Failures of the
 * database and of its connections have a code or one of these messages.
 */
export const isPlanningError = (error: unknown): boolean =>
  error instanceof Error &&
  codeOf(error) === undefined &&
  !isOutage(error) &&
  !/connection|timeout|terminated|abort/i.test(error.message);
