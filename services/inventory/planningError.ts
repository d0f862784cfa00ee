/**
 * True for an unexpected failure of planning, which concerns what was planned. Failures of the
 * database and of its connections have a code or one of these messages.
 */
export const isPlanningError = (error: unknown): boolean =>
  error instanceof Error &&
  (error as { code?: unknown }).code === undefined &&
  error.name !== 'KnexTimeoutError' &&
  !/connection|timeout|terminated|abort/i.test(error.message);
