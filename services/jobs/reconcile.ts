import { ignoreNoChange, type Commit } from '../../db/core/commit.ts';
import { readDatabaseTime } from '../../db/core/databaseTime.ts';
import type { Knex } from '../../db/core/knex.ts';
import { withPendingTask } from '../../db/core/outbox.ts';
import { findWait, leaveLostRun, type Wait } from '../../db/jobs/betweenAttempts.ts';
import { claimUnfinished, findLeasedAttempts } from '../../db/jobs/jobs.ts';
import { isRunnerLost } from '../../db/runners/attempts.ts';
import { hasLease } from '../../db/webhooks/firstAttempts.ts';
import { Job } from '../../db/models/Job.ts';
import { runOf } from '../../domain/jobs/jobs.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import type { JobType } from '../../domain/jobs/jobType.ts';
import { countedAttempts, mayRetry, retryDelayMs } from '../../domain/jobs/retry.ts';
import { runEach } from '../../domain/shared/runEach.ts';
import type { Log } from '../../platform/log.ts';
import type { DescribeWorkflow, WorkflowState } from '../../domain/dispatch/tasks.ts';
import { jobWorkflowId } from '../../domain/dispatch/workflowIds.ts';
import { reconcileInBatches } from '../shared/reconcileInBatches.ts';
import type { JobAttempts } from './attempts.ts';
import type { CancelRevoked } from './cancelRevoked.ts';
import { jobRecord } from './jobAudit.ts';
import type { JobFactory } from './createJob.ts';
import { checkedBefore, INTERRUPTED } from './lifecycle.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import { UNKNOWN_TYPE, type UnknownTypes } from './unknownTypes.ts';

export type Reconcile = ReturnType<typeof createReconcile>;

type Deps = {
  db: Knex;
  commit: Commit;
  jobAttempts: JobAttempts;
  cancelRevoked: CancelRevoked;
  jobTypes: JobTypes;
  unknownTypes: Pick<UnknownTypes, 'hasWaitedTooLong'>;
  log: Log;
  jobFactory: JobFactory;
  describeWorkflow: DescribeWorkflow;
  /** Says in the log of a job that its runner was lost. */
  noteLostRunner(job: Job): Promise<void>;
  /** The reconciler checks a job at the earliest this long after its creation or its last check. */
  graceMs: number;
};

/**
 * Finds jobs that are `queued` or `running` although their workflow is missing or closed, or their runner
 * was lost in the last attempt and no other one asks. It starts or ends them, so that no job keeps such a
 * status for ever: it starts those that no attempt can be in progress of. A job whose type no process knows any
 * more ends after a day.
 */
export function createReconcile({
  db,
  commit,
  jobAttempts,
  cancelRevoked,
  jobTypes,
  unknownTypes,
  log,
  jobFactory,
  describeWorkflow,
  noteLostRunner,
  graceMs,
}: Deps) {
  /** Ends a job without a workflow if no process has known its type for a day. */
  const endIfUnknown = async (job: Job): Promise<boolean> =>
    (await unknownTypes.hasWaitedTooLong(job)) &&
    jobAttempts.finalizeAbandoned(runOf(job), 'failed', UNKNOWN_TYPE);

  /** Starts a job that has neither a workflow nor a pending outbox task, if its type is known. */
  async function restart(job: Job): Promise<boolean> {
    const type = jobTypes.find(job.type);
    if (!type) return endIfUnknown(job);
    await commit(systemCaller(job.tenantId, 'reconcile'), (work) => {
      jobRecord.acted(work, 'redispatch', job);
      work.dispatch({ ...jobFactory.startTask(job, type), alone: true });
    });
    return true;
  }

  /**
   * Starts a job again that waits for its next attempt and has lost its workflow, as when Temporal has lost its data: the
   * attempt follows when it is due. A job that is to be cancelled ends. Undefined if an attempt may be in progress, or
   * none is left.
   */
  async function continueWaiting(job: Job): Promise<boolean | undefined> {
    await jobTypes.refreshUnknown(job.type);
    const type = jobTypes.find(job.type);
    if (!type || job.status !== 'running') return undefined;
    const wait = await findWait(db, job, type.lane);
    if (!wait) return undefined;
    if (job.cancelRequestedAt) {
      return jobAttempts.finalizeAbandoned(runOf(job), 'cancelled', 'cancelled');
    }
    const code = job.error?.code ?? INTERRUPTED.code;
    if (!mayRetry(job.retryPolicy, countedAttempts(job), code)) return undefined;
    return startAfter(job, type, { code, retryInMs: dueInMs(job, wait) });
  }

  /** Starts the workflow of a job that has made attempts; false if it has started another one in the meantime. */
  const startAfter = (
    job: Job,
    type: JobType,
    failed: { code: string; retryInMs: number },
  ): Promise<boolean> =>
    commit(systemCaller(job.tenantId, 'reconcile'), (work) => {
      work.change(leaveLostRun(job, type.lane, checkedBefore(failed.retryInMs, work.now)));
      jobRecord.acted(work, 'redispatch', job);
      work.dispatch(jobFactory.startTask(job, type, failed));
      return true;
    }).catch(ignoreNoChange(false));

  /** The state of the workflow that runs the job. A job that its process has left may have two. */
  async function stateOf({ id, workflowId, leasedUntil }: Job): Promise<WorkflowState> {
    const state = await describeWorkflow(workflowId ?? jobWorkflowId(id));
    if (leasedUntil === null || (state.found && state.status === 'running')) return state;
    const own = await describeWorkflow(jobWorkflowId(id));
    return own.found ? own : state;
  }

  /** By the clock of the database, as everywhere: the clocks of the processes may differ. */
  const isLeased = async ({ id }: Job): Promise<boolean> =>
    (await findLeasedAttempts(db, [id])).some(({ leftMs }) => leftMs > 0);

  const isBeingStarted = async ({ id }: Job): Promise<boolean> =>
    (await withPendingTask(db, [jobWorkflowId(id)])).size > 0;

  async function repair(job: Job, hasPendingTask: boolean): Promise<boolean> {
    if (hasPendingTask) return false;
    // It gets a workflow when it gets a slot.
    if (job.slot === 'waiting' && job.status === 'queued' && job.runId === null)
      return endIfUnknown(job);
    // Its first attempt is made without a workflow, or its workflow is being started since.
    const isBetweenRuns = job.status === 'running' && job.runId === null;
    if (isBetweenRuns && ((await hasLease(db, job.id)) || (await isBeingStarted(job))))
      return false;
    if (job.leasedUntil !== null && (await isLeased(job))) return false;
    if (job.pool !== '' && job.status === 'running') await noteLostRunner(job);
    if (job.pool !== '' && (await isRunnerLost(db, job.id))) {
      return jobAttempts.finalizeAbandoned(runOf(job), 'failed', 'worker_lost', {
        cancelsRun: true,
      });
    }
    const state = await stateOf(job);
    if (state.found && state.status === 'running') return false;
    // A run that has ended since the job was read may have left it to another one.
    const current = await Job.query(db).findById(job.id).select('run_id');
    if (current?.runId !== job.runId) return false;
    log.warn(
      { jobId: job.id, status: job.status, workflow: state },
      'reconciling a job with its workflow',
    );
    if (!state.found && (job.status === 'queued' || job.leasedUntil !== null)) return restart(job);
    const continued = state.found ? undefined : await continueWaiting(job);
    if (continued !== undefined) return continued;
    const { status, code } = outcomeOf(state);
    return jobAttempts.finalizeAbandoned(runOf(job), status, code);
  }

  async function reconcileDue(signal: AbortSignal): Promise<number> {
    const now = await readDatabaseTime(db);
    return reconcileInBatches({ db, log }, signal, {
      name: 'reconciling a job',
      repair,
      workflowIdOf: ({ id }) => jobWorkflowId(id),
      claimBatch: (limit) =>
        claimUnfinished(db, { before: new Date(now.getTime() - graceMs), now, limit }),
    });
  }

  return {
    /**
     * Cancels running jobs whose authority has ended, and checks all jobs that are due, until `signal`
     * aborts. Returns the number of repaired jobs. Errors: those of `runEach`.
     */
    async reconcileJobs(signal: AbortSignal): Promise<number> {
      const steps = [
        () => cancelRevoked.cancelAll(signal).then(() => 0),
        () => reconcileDue(signal),
      ];
      const [, repaired = 0] = await runEach(steps, signal);
      return repaired;
    },
  };
}

/**
 * In how many milliseconds the next attempt is due. What an endpoint has asked for with `Retry-After` has passed: the job is
 * not checked before (`checkedBefore`).
 */
function dueInMs(job: Job, wait: Wait): number {
  const delayMs = retryDelayMs(job.retryPolicy, Math.max(countedAttempts(job), 1));
  return Math.max(Math.round(wait.dueInMs ?? delayMs - wait.failedMsAgo), 0);
}

/** How a job ends whose workflow is in this state. */
function outcomeOf(state: WorkflowState): { status: 'failed' | 'cancelled'; code: string } {
  if (!state.found) return { status: 'failed', code: 'workflow_lost' };
  if (state.status === 'cancelled') return { status: 'cancelled', code: 'cancelled' };
  if (state.status === 'terminated') return { status: 'failed', code: 'workflow_terminated' };
  return { status: 'failed', code: 'workflow_closed' };
}
