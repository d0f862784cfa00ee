import { JobFailure } from '../../domain/jobs/jobType.ts';
import { AppError } from '../../domain/shared/errors.ts';

const BUSY_CODES: ReadonlySet<string> = new Set([
  'too_many_requests',
  'queue_full',
  'unavailable',
  'server_busy',
  'no_database_connection',
]);

/** The failure of an attempt that this process could not serve now; undefined for other errors. */
export const busyFailure = (error: unknown): JobFailure | undefined =>
  error instanceof AppError && BUSY_CODES.has(error.code)
    ? new JobFailure('busy', error.message, {
        retryAfterMs: (error.extra.retryAfterSeconds ?? 0) * 1_000,
      })
    : undefined;
