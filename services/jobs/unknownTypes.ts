import type { WriteUnaudited } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { jobChange, writeJobChange } from '../../db/jobs/jobs.ts';
import { isKnownToWorker } from '../../db/jobs/workers.ts';
import { Job } from '../../db/models/Job.ts';
import { DAY_MS } from '../../domain/shared/durations.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import { jobLogTopic } from './jobAudit.ts';
import { AttemptFailed, type JobRunRef } from './lifecycle.ts';

export type UnknownTypes = ReturnType<typeof createUnknownTypes>;

/** How a job ends whose type no worker has known for a day. */
export const UNKNOWN_TYPE = 'unknown_job_type';

/** This process does not know the type of a job: it waits for a worker that does. */
export class TypeNotKnownHere extends AttemptFailed {
  declare readonly retryInMs: number;

  constructor(retryInMs: number) {
    super(UNKNOWN_TYPE, retryInMs);
  }
}

/** Longer than any rolling upgrade; the type was removed then. */
const MAX_WAIT_MS = DAY_MS;

/** Jobs of one round are asked about within this time. */
const REFRESH_MS = 1_000;

const UNFINISHED = { statuses: ['queued', 'running'] };

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
      const values = { error: JSON.stringify({ code: UNKNOWN_TYPE, message }), updated_at: now };
      return writeJobChange(
        executor,
        jobChange({
          jobId: job.id,
          guard: UNFINISHED,
          values,
          lines: [line],
          topics: [jobLogTopic(job.id)],
        }),
      );
    });

  /** For how long a job has waited since it said so, in milliseconds; it says so if it has not. */
  async function noteWait(job: Job): Promise<number> {
    if (job.error?.code === UNKNOWN_TYPE) return Date.now() - job.updatedAt.getTime();
    await note(job);
    return 0;
  }

  /** A job whose type is known again waits for a day from the next time on. */
  const forgetWait = (job: Job) =>
    writeUnaudited((executor, now) =>
      writeJobChange(
        executor,
        jobChange({
          jobId: job.id,
          guard: UNFINISHED,
          values: { error: null, updated_at: now },
        }),
      ),
    );

  let refreshing: Promise<void> | undefined;
  let refreshedAt = 0;
  /** Reads the types of runners again, once for the jobs of a round. */
  function refreshTypes(): Promise<void> {
    const now = performance.now();
    if (!refreshing || now - refreshedAt > REFRESH_MS) {
      refreshedAt = now;
      refreshing = jobTypes.refresh();
    }
    return refreshing;
  }

  async function isKnownAnywhere({ type, pool }: Job): Promise<boolean> {
    if (pool === '') return jobTypes.isOwn(type) || (await isKnownToWorker(db, type));
    if (!jobTypes.find(type)) await refreshTypes();
    return jobTypes.find(type)?.lane === 'remote';
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
      if (job.status === 'queued' || (job.status === 'running' && isOwnRun)) {
        const waitedMs = await noteWait(job);
        if (waitedMs > MAX_WAIT_MS) throw new AttemptFailed(UNKNOWN_TYPE, null);
        throw new TypeNotKnownHere(retryAfter(waitedMs));
      }
    },

    /**
     * Call it for a job without a workflow, which waits until a process that knows its type starts it. True if
     * no process has known it for a day: the job is to end.
     */
    async hasWaitedTooLong(job: Job): Promise<boolean> {
      if (!(await isKnownAnywhere(job))) return (await noteWait(job)) > MAX_WAIT_MS;
      if (job.error?.code === UNKNOWN_TYPE) await forgetWait(job);
      return false;
    },

    /** The ids of these jobs that no run has started and whose type this process does not know. */
    async findQueued(jobIds: readonly string[]): Promise<string[]> {
      const jobs = await Job.query(db)
        .findByIds([...jobIds])
        .where({ status: 'queued' })
        .select('id', 'type');
      return jobs.filter(({ type }) => !jobTypes.isOwn(type)).map(({ id }) => id);
    },
  };
}
