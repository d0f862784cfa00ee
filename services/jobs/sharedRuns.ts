import type { DispatchUnaudited } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { deleteStarts } from '../../db/core/outbox.ts';
import { findLeasedAttempts, takeFromRun } from '../../db/jobs/jobs.ts';
import { Job } from '../../db/models/Job.ts';
import { startJobTask, type FailedFirstAttempt } from '../../domain/dispatch/tasks.ts';
import type { JobAttempts, SharedRunRef } from './attempts.ts';
import { AttemptFailed, INTERRUPTED, LEASE_CHECK_MS, WorkerStopping } from './lifecycle.ts';
import type { RecordTogether } from './recordTogether.ts';
import type { UnknownTypes } from './unknownTypes.ts';

export type SharedRuns = ReturnType<typeof createSharedRuns>;

type Deps = {
  db: Knex;
  dispatchUnaudited: DispatchUnaudited;
  jobAttempts: Pick<
    JobAttempts,
    'claimShared' | 'makeAttempt' | 'finalizeAbandoned' | 'endIfCancelled'
  >;
  recordTogether: RecordTogether;
  unknownTypes: Pick<UnknownTypes, 'findQueued'>;
  heartbeatMs: number;
};

/** PostgreSQL has crashed and forgotten the attempt, so the next one is the first. */
const CLAIM_LOST: FailedFirstAttempt = { code: 'claim_lost', retryInMs: 0 };

/** The process of the last attempt that the job has was killed. */
const WORKER_LOST: FailedFirstAttempt = { code: 'worker_lost', retryInMs: null };

/** The job's own run finds out whether it has another attempt. */
const LEASE_EXPIRED: FailedFirstAttempt = { code: 'worker_lost', retryInMs: 0 };

type Attempts = { jobIds: readonly string[]; timeoutMs: number };

/**
 * Runs that several short jobs share, for their first attempts. A job that has not succeeded then
 * goes on in its own run, so nothing that one job does concerns the others.
 */
export function createSharedRuns({
  db,
  dispatchUnaudited,
  jobAttempts,
  recordTogether,
  unknownTypes,
  heartbeatMs,
}: Deps) {
  /**
   * Starts the own run of a job, or ends the job if that was requested. Does nothing with a job that
   * the run does not have any more.
   */
  async function goOnAlone(
    { runId }: Pick<SharedRunRef, 'runId'>,
    jobId: string,
    timeoutMs: number,
    firstAttempt: FailedFirstAttempt,
  ): Promise<void> {
    let isTaken = false;
    await dispatchUnaudited(async (trx) => {
      const job = await takeFromRun(trx, { jobId, runId });
      if (!job) return [];
      isTaken = true;
      // A queued job has lost its claim, and so its attempt.
      const before = job.status === 'queued' ? CLAIM_LOST : firstAttempt;
      const task = startJobTask(job, {
        lane: 'inline',
        timeoutMs,
        heartbeatMs,
        firstAttempt: before,
      });
      // The start of the new job knows nothing of the attempt: its run would not wait for the next one.
      await deleteStarts(trx, task.workflowId);
      return [task];
    });
    if (!isTaken) await jobAttempts.endIfCancelled({ jobId, runId });
  }

  /**
   * Goes on with jobs whose first attempts a process makes, or has made, for this run. Error:
   * `AttemptFailed('leased')` while these belong to the process.
   */
  async function goOnAfterLeases(
    { workflowId }: SharedRunRef,
    jobIds: readonly string[],
    timeoutMs: number,
  ): Promise<void> {
    const leased = await findLeasedAttempts(db, jobIds, workflowId);
    // The others could not be claimed: their leases have just expired, or they have no attempt left.
    for (const { jobId, runId, leftMs } of leased)
      if (leftMs === 0) await goOnAlone({ runId }, jobId, timeoutMs, LEASE_EXPIRED);
    const leftMs = Math.max(...leased.map((attempt) => attempt.leftMs), 0);
    if (leftMs > 0) throw new AttemptFailed('leased', leftMs + LEASE_CHECK_MS);
  }

  return {
    goOnAlone,

    /**
     * Makes the first attempts of jobs, all at the same time. Repeating it makes further attempts of
     * those that were interrupted. Errors: the reason of `signal`; database errors.
     */
    async makeAttempts(
      run: SharedRunRef,
      { jobIds, timeoutMs }: Attempts,
      signal: AbortSignal,
    ): Promise<void> {
      const record = recordTogether(run);
      const goOn = (jobId: string, { code, retryInMs }: AttemptFailed) =>
        goOnAlone(run, jobId, timeoutMs, { code, retryInMs });
      const attempt = async (job: Job) => {
        try {
          await jobAttempts.makeAttempt(job, 'inline', signal, record);
        } catch (error) {
          const failed = error instanceof WorkerStopping ? INTERRUPTED : error;
          if (!(failed instanceof AttemptFailed)) throw error;
          await goOn(job.id, failed);
        }
      };
      const claimed = await jobAttempts.claimShared(run, jobIds);
      const results = await Promise.allSettled(claimed.map(attempt));
      const failed = results.find(({ status }) => status === 'rejected');
      if (failed?.status === 'rejected') throw failed.reason;
      if (claimed.length === jobIds.length) return;
      // Interrupted in the last attempt that they have.
      const others = jobIds.filter((jobId) => !claimed.some(({ id }) => id === jobId));
      const lost = await Job.query(db)
        .findByIds(others)
        .where({ run_id: run.runId, status: 'running' })
        .select('id');
      for (const { id } of lost) await goOnAlone(run, id, timeoutMs, WORKER_LOST);
      // Their own runs find a worker that knows the type.
      for (const jobId of await unknownTypes.findQueued(others))
        await goOnAlone(run, jobId, timeoutMs, CLAIM_LOST);
      await goOnAfterLeases(run, others, timeoutMs);
    },

    /** Ends the jobs that the run still has, and those that it has not started. */
    async finalize(
      { runId }: SharedRunRef,
      jobIds: readonly string[],
      status: 'failed' | 'cancelled',
      code: string,
    ): Promise<void> {
      const jobs = await Job.query(db)
        .findByIds([...jobIds])
        .select('id', 'status', 'run_id');
      const own = jobs.filter((job) => job.status === 'queued' || job.runId === runId);
      for (const { id } of own)
        await jobAttempts.finalizeAbandoned({ jobId: id, runId }, status, code);
    },
  };
}
