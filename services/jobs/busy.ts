import { JobFailure } from '../../domain/jobs/jobType.ts';
import { isBusyError } from '../../domain/shared/busy.ts';

/** The failure of an attempt that this process could not serve now; undefined for other errors. */
export const busyFailure = (error: unknown): JobFailure | undefined =>
  isBusyError(error)
    ? new JobFailure('busy', error.message, {
        retryAfterMs: (error.extra.retryAfterSeconds ?? 0) * 1_000,
      })
    : undefined;
