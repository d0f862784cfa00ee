import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Knex } from '../../db/core/knex.ts';
import type { Notifications } from '../../db/core/notifications.ts';
import { isCancelRequested } from '../../db/jobs/jobs.ts';
import type { Job } from '../../db/models/Job.ts';
import type { ImmediateJobs } from '../../domain/dispatch/tasks.ts';
import {
  tenantKey,
  useConnectionsFor,
  useConnectionsForProcess,
} from '../../platform/connectionUser.ts';
import { jobLog, type Log } from '../../platform/log.ts';
import { waitUntilIdle } from '../../platform/waitUntilIdle.ts';
import { orAborted } from '../../platform/within.ts';
import type { JobAttempts, SharedRunRef } from './attempts.ts';
import { jobCancelTopic } from './jobAudit.ts';
import { AttemptFailed, INTERRUPTED, WorkerStopping } from './lifecycle.ts';
import type { RecordTogether } from './recordTogether.ts';
import type { SharedRuns } from './sharedRuns.ts';

export type ImmediateAttempts = ReturnType<typeof createImmediateAttempts>;

type Deps = {
  db: Knex;
  jobAttempts: Pick<JobAttempts, 'claimShared' | 'makeAttempt'>;
  sharedRuns: Pick<SharedRuns, 'goOnAlone'>;
  recordTogether: RecordTogether;
  notifications: Notifications;
  log: Log;
  stopGraceMs: number;
};

/** An attempt ends within its time limit, and its outcome is recorded within this time after it. */
const LEASE_MARGIN_MS = 3_000;

/** How long interrupted attempts may take to be recorded when the process stops. */
const STOP_RECORD_MS = 3_000;

/** How many ended attempts are kept for their run, which comes within a second. */
const MAX_ENDED = 10_000;

/**
 * Makes the first attempts of short jobs in the process that has committed them, before their run is
 * started in Temporal. The run finds the work done. What has not ended when the process dies is made
 * again by the run, or by the job's own run from the outbox, as soon as the lease has expired.
 */
export function createImmediateAttempts({
  db,
  jobAttempts,
  sharedRuns,
  recordTogether,
  notifications,
  log,
  stopGraceMs,
}: Deps) {
  const inProgress = new Map<string, Promise<void>>();
  const ended = new LRUCache<string, true>({ max: MAX_ENDED });
  const stopping = new AbortController();
  let accepts = false;

  /** The notification may be about any change: the connection for notifications was lost, too. */
  const abortIfCancelled = (jobId: string, controller: AbortController): Promise<void> =>
    useConnectionsForProcess(async () => {
      if (await isCancelRequested(db, jobId)) controller.abort();
      // An attempt that is not aborted ends within its limit.
    }).catch((error: unknown) =>
      jobLog(log, jobId).debug({ err: error }, 'a cancellation was not read'),
    );

  async function attempt(
    run: SharedRunRef,
    job: Job,
    timeoutMs: number,
    record: ReturnType<RecordTogether>,
  ): Promise<void> {
    const cancelled = new AbortController();
    const unsubscribe = notifications.on(
      jobCancelTopic(job.id),
      () => void abortIfCancelled(job.id, cancelled),
    );
    const signal = AbortSignal.any([cancelled.signal, stopping.signal]);
    try {
      await jobAttempts.makeAttempt(job, 'inline', signal, record);
    } catch (error) {
      if (!(error instanceof AttemptFailed) && !signal.aborted)
        jobLog(log, job.id, run.workflowId).warn(
          { err: error },
          'an attempt could not be recorded',
        );
      const { code, retryInMs } = error instanceof AttemptFailed ? error : INTERRUPTED;
      await sharedRuns.goOnAlone(run, job.id, timeoutMs, { code, retryInMs });
    } finally {
      unsubscribe();
    }
  }

  async function attemptAll({ workflowId, jobIds, timeoutMs }: ImmediateJobs): Promise<void> {
    const run = { runId: randomUUID(), workflowId };
    const claimed = await jobAttempts.claimShared(run, jobIds, timeoutMs + LEASE_MARGIN_MS);
    const record = recordTogether(run);
    const failed = new Set<string>();
    await Promise.all(
      claimed.map((job) =>
        attempt(run, job, timeoutMs, record).catch((error: unknown) => {
          // Its lease expires, and its run makes another attempt.
          jobLog(log, job.id, workflowId).warn(
            { err: error },
            'a job goes on after the end of its lease',
          );
          failed.add(job.id);
        }),
      ),
    );
    for (const id of jobIds) if (!failed.has(id)) ended.set(id, true);
  }

  const isIdle = () => inProgress.size === 0;

  return {
    /** False in a process without workers, and in one that stops. */
    accepts: (): boolean => accepts,

    /** Makes the first attempts of jobs, all at the same time. Never rejects. */
    async make(jobs: ImmediateJobs): Promise<void> {
      const { tenantId, jobIds } = jobs;
      // The run makes the first attempts then.
      if (!accepts) return;
      const made = useConnectionsFor({ part: 'background', key: tenantKey(tenantId) }, async () =>
        attemptAll(jobs),
      ).catch((error: unknown) => {
        // Not claimed: the run makes the first attempts.
        log.warn({ err: error, jobs: jobIds.length }, 'short jobs could not be claimed');
      });
      for (const id of jobIds) inProgress.set(id, made);
      await made;
      for (const id of jobIds) inProgress.delete(id);
    },

    /**
     * Waits for the attempts of these jobs that this process makes. Returns the jobs that are left to
     * their run. Error: the reason of `signal`.
     */
    async waitFor(jobIds: readonly string[], signal: AbortSignal): Promise<string[]> {
      const pending = new Set(jobIds.flatMap((id) => inProgress.get(id) ?? []));
      if (pending.size > 0) await orAborted(signal, Promise.all(pending));
      return jobIds.filter((id) => !ended.delete(id));
    },

    start: (): void => void (accepts = true),

    /** Accepts no more jobs. After the grace time, other workers go on with those in progress. */
    async stop(): Promise<void> {
      accepts = false;
      await waitUntilIdle(isIdle, stopGraceMs);
      stopping.abort(new WorkerStopping());
      await waitUntilIdle(isIdle, STOP_RECORD_MS);
    },
  };
}
