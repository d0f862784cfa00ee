import { AppError } from '../../../domain/shared/errors.ts';
import { JobFailure } from '../../../domain/jobs/jobType.ts';
import { busyFailure } from '../../jobs/busy.ts';
import { isConcurrentChange } from '../../inventory/retryOnConflict.ts';
import { AttemptNotCurrent } from '../../inventory/approvedChanges.ts';

/**
 * The failure of an attempt whose changes could not be applied. A rejected write is rejected again; a
 * concurrent change and busy locks are worth another attempt. Other errors are returned as they are.
 */
export function applyFailure(error: unknown): unknown {
  if (error instanceof AttemptNotCurrent)
    return new JobFailure(
      'attempt_superseded',
      'Another attempt runs the job, or the job has finished',
      {
        retryable: false,
      },
    );
  if (!(error instanceof AppError)) return error;
  const busy = busyFailure(error);
  if (busy) return busy;
  if (error.code === 'permission_denied')
    return new JobFailure('permission_lost', error.message, { retryable: false });
  return isConcurrentChange(error)
    ? new JobFailure('concurrent_change', error.message, { retryable: true })
    : new JobFailure('change_rejected', error.message, { retryable: false });
}
