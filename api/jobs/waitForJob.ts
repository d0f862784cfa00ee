import type { JobData } from '../../domain/jobs/records.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError } from '../../domain/shared/errors.ts';
import type { Jobs, JobWithLogs } from '../../services/jobs/jobs.ts';
import type { Preferences } from '../http/prefer.ts';

type WaitOptions = { caller: Caller; prefer: Preferences; signal: AbortSignal };

/**
 * Waits until a new job has finished, if the request prefers to wait. `actedWith` is the permission
 * with which the caller has created the job. Otherwise returns the job as created.
 */
export const waitForJob =
  (jobs: Jobs, actedWith: Permission) =>
  async (
    { caller, prefer: { waitMs }, signal }: WaitOptions,
    job: JobData,
  ): Promise<JobWithLogs> => {
    const current = { job, logs: [] };
    if (waitMs === 0) return current;
    return jobs
      .readWhenFinished(caller, job.id, { waitMs, signal, justCreated: true }, actedWith)
      .catch((error: unknown) => {
        if (error instanceof AppError && error.code === 'not_found') return current;
        throw error;
      });
  };
