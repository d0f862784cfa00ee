import type { WriteUnaudited } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { jobChange, writeJobChange } from '../../db/jobs/jobs.ts';
import { Job } from '../../db/models/Job.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import { jobLogTopic } from './jobAudit.ts';
import { AttemptFailed, type JobRunRef } from './lifecycle.ts';

export type UnknownTypes = ReturnType<typeof createUnknownTypes>;

const CODE = 'unknown_job_type';

/** This process does not know the type of a job: it waits for a worker that does. */
export class TypeNotKnownHere extends AttemptFailed {
  declare readonly retryInMs: number;

  constructor(retryInMs: number) {
    super(CODE, retryInMs);
  }
}

/** Longer than any rolling upgrade; the type was removed then. */
const MAX_WAIT_MS = 24 * 3_600_000;

const MIN_RETRY_MS = 500;
const MAX_RETRY_MS = 60_000;

/** The longer a job has waited, the less often it is tried. */
const retryAfter = (waitedMs: number): number =>
  Math.min(Math.max(waitedMs / 10, MIN_RETRY_MS), MAX_RETRY_MS);

type Deps = { db: Knex; writeUnaudited: WriteUnaudited; jobTypes: JobTypes };

/**
 * What happens to jobs whose type this process does not know. In a rolling upgrade, processes of the new
 * version create jobs of new types, and Temporal hands them to any worker.
 */
export function createUnknownTypes({ db, writeUnaudited, jobTypes }: Deps) {
  /** The job says once that it waits; `error` and its time remain until an attempt succeeds. */
  const note = (job: Job) =>
    writeUnaudited((executor, now) => {
      const message = `The type ${job.type} is not known to the worker; waiting for one that knows it`;
      const line = { attempt: job.attempts, level: 'warn', message, data: null, at: now } as const;
      const values = { error: JSON.stringify({ code: CODE, message }), updated_at: now };
      const guard = { statuses: ['queued', 'running'] };
      return writeJobChange(
        executor,
        jobChange(job.id, guard, values, [line], [jobLogTopic(job.id)]),
      );
    });

  async function waitMs(job: Job): Promise<number> {
    if (job.error?.code !== CODE) {
      await note(job);
      return MIN_RETRY_MS;
    }
    const waitedMs = Date.now() - job.updatedAt.getTime();
    if (waitedMs > MAX_WAIT_MS) throw new AttemptFailed(CODE, null);
    return retryAfter(waitedMs);
  }

  return {
    /**
     * Call it for a job that this run could not claim. Errors: `TypeNotKnownHere` if that was because of
     * its type; after a day `AttemptFailed`, without a further attempt.
     */
    async assertKnown({ jobId, runId }: JobRunRef): Promise<void> {
      const job = await Job.query(db).findById(jobId);
      if (!job || jobTypes.isOwn(job.type)) return;
      const isOwnRun = job.runId === null || job.runId === runId;
      if (job.status === 'queued' || (job.status === 'running' && isOwnRun))
        throw new TypeNotKnownHere(await waitMs(job));
    },

    /** Of these jobs, those that no run has started and whose type this process does not know. */
    async findQueued(jobIds: readonly string[]): Promise<string[]> {
      const jobs = await Job.query(db)
        .findByIds([...jobIds])
        .where({ status: 'queued' })
        .select('id', 'type');
      return jobs.filter(({ type }) => !jobTypes.isOwn(type)).map(({ id }) => id);
    },
  };
}
