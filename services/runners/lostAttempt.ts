import type { Knex } from '../../db/core/knex.ts';
import { attemptGuard, writeJobChange } from '../../db/jobs/jobs.ts';
import { Job } from '../../db/models/Job.ts';
import { lockJob, markLost, waitsSince } from '../../db/runners/attempts.ts';
import { logChange } from '../jobs/logChange.ts';

/** Says in the log of a job that the runner of an attempt was lost. */
export async function noteLostAttempt(trx: Knex, job: Job, attempt: number): Promise<void> {
  const line = {
    attempt: job.attempts,
    level: 'warn',
    message: `The runner of attempt ${attempt} was lost`,
    data: null,
    at: new Date(),
  } as const;
  const change = logChange({ jobId: job.id, guard: attemptGuard(job), lines: [line] });
  await writeJobChange(trx, change);
}

/** Creates the function that says so once, if the lease of the attempt has ended and another one may follow. */
export const createNoteLostRunner =
  ({ db }: { db: Knex }) =>
  async (job: Job): Promise<void> => {
    if ((await waitsSince(db, job.id)) === null) return;
    await db.transaction(async (trx) => {
      // Who begins an attempt locks the job first, too.
      await lockJob(trx, job.id);
      if (await markLost(trx, job.id, job.attempts)) await noteLostAttempt(trx, job, job.attempts);
    });
  };
