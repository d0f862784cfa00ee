import type { Caller } from '../../domain/shared/caller.ts';
import { AppError } from '../../domain/shared/errors.ts';
import type { Jobs, JobWithLogs } from '../../services/jobs.ts';
import type { Preferences } from '../http/prefer.ts';

type Waiting = { caller: Caller; prefer: Preferences; signal: AbortSignal };

/** Waits for the end of a job that was just made if the request prefers to, and its caller may read the job. */
export const jobAtEnd =
  (jobs: Jobs) =>
  async (
    { caller, prefer: { waitMs }, signal }: Waiting,
    job: JobWithLogs['job'],
  ): Promise<JobWithLogs> => {
    const now = { job, logs: [] };
    if (waitMs === 0) return now;
    return jobs
      .readAtEnd(caller, job.id, { waitMs, signal, fresh: true })
      .catch((error: unknown) => {
        if (error instanceof AppError && error.code === 'not_found') return now;
        throw error;
      });
  };
