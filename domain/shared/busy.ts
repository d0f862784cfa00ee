import { AppError } from './errors.ts';

const BUSY_CODES: ReadonlySet<string> = new Set([
  'too_many_requests',
  'queue_full',
  'unavailable',
  'server_busy',
  'no_database_connection',
]);

/** True for the errors of work that this installation could not do now: it may succeed later, unchanged. */
export const isBusyError = (error: unknown): error is AppError =>
  error instanceof AppError && BUSY_CODES.has(error.code);
