import {
  approvalChange,
  checkAllPending,
  claimApprovalsToReconcile,
  latestApproval,
  newestPending,
} from '../../db/approvals/approvals.ts';
import { ignoreNoChange, type Commit } from '../../db/core/commit.ts';
import { readDatabaseTime } from '../../db/core/databaseTime.ts';
import type { Knex } from '../../db/core/knex.ts';
import { withPendingTask } from '../../db/core/outbox.ts';
import type { RecordChange } from '../../db/core/unitOfWork.ts';
import type { Approval } from '../../db/models/Approval.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import { HOUR_MS } from '../../domain/shared/durations.ts';
import { runEach } from '../../domain/shared/runEach.ts';
import type { Log } from '../../platform/log.ts';
import {
  startApprovalTask,
  signalApprovalTask,
  type OutboxTask,
  type DescribeWorkflow,
} from '../../domain/dispatch/tasks.ts';
import { approvalWorkflowId } from '../../domain/dispatch/workflowIds.ts';
import type { ApprovalExecution } from './execution.ts';
import { approvalSubject } from './approvalAudit.ts';
import { reconcileInBatches } from '../shared/reconcileInBatches.ts';

export type ApprovalReconcile = ReturnType<typeof createApprovalReconcile>;

type Deps = {
  db: Knex;
  commit: Commit;
  log: Log;
  execution: ApprovalExecution;
  describeWorkflow: DescribeWorkflow;
  /** How long a request may be overdue before it is repaired, in milliseconds. */
  graceMs: number;
  heartbeatMs: number;
};

/** Requests that wait for decisions are checked at least this often, and not all in one round. */
const PENDING_CHECK_INTERVAL_MS = HOUR_MS;

/**
 * How often the workflow of a request is started again because it has failed. After that the failure is taken for
 * permanent.
 */
const MAX_RESTARTS = 5;

/**
 * Finds unfinished requests whose workflow is missing, has ended or has missed a decision, and
 * repairs them. No request waits for ever, and every decision takes effect.
 */
export function createApprovalReconcile({
  db,
  commit,
  log,
  execution,
  describeWorkflow,
  graceMs,
  heartbeatMs,
}: Deps) {
  const commitTask = (
    approval: Approval,
    action: string,
    task: OutboxTask,
    change?: RecordChange,
  ): Promise<boolean> =>
    commit(systemCaller(approval.tenantId, 'reconcile'), (work) => {
      if (change) work.change(change);
      work.audit(action, approvalSubject(approval));
      work.dispatch(task);
      return true;
    });

  async function repair(approval: Approval, hasPendingTask: boolean, now: Date): Promise<boolean> {
    if (hasPendingTask) return false;
    const state = await describeWorkflow(approvalWorkflowId(approval.id));
    if (!state.found)
      return commitTask(approval, 'workflow.redispatch', startApprovalTask(approval, heartbeatMs));
    if (state.status === 'running') return isOverdue(approval, now) && (await nudge(approval));
    // The request finishes with its job, which has a run of its own.
    if (approval.execution === 'running') return execution.finishWithEndedJob(approval);
    if (state.status === 'failed' && approval.restarts < MAX_RESTARTS) return restart(approval);
    log.warn(
      { approvalId: approval.id, status: approval.status, workflow: state },
      'closing a request whose workflow has ended',
    );
    // A request that has expired in the meantime is expired. Any other is cancelled.
    await execution.expire(approval.id);
    await execution.cancel(approval.id, `the workflow of the request has ended: ${state.status}`);
    return true;
  }

  /**
   * Starts the workflow of a request again, which has failed without having ended the request: it reads from the record
   * what is to be done.
   */
  async function restart(approval: Approval): Promise<boolean> {
    const { id, status, execution: before, restarts } = approval;
    log.warn({ approvalId: id, restarts }, 'starting the workflow of a request that has failed');
    const counted = approvalChange(
      id,
      { status, execution: before, restarts },
      { restarts: restarts + 1 },
      { newVersion: false },
    );
    return commitTask(
      approval,
      'workflow.redispatch',
      startApprovalTask(approval, heartbeatMs),
      counted,
    ).catch(ignoreNoChange(false));
  }

  /**
   * Continues a request whose workflow runs but has not acted in time: a signal may have been lost.
   */
  async function nudge(approval: Approval): Promise<boolean> {
    if (approval.status === 'pending') {
      await execution.expire(approval.id);
      return true;
    }
    const decision = assertDefined(await latestApproval(db, approval.id), 'decision of approval');
    const signal = signalApprovalTask(approval, 'approve', decision.id);
    return commitTask(approval, 'workflow.resend_signal', signal);
  }

  const isOverdue = (approval: Approval, now: Date): boolean => {
    const nextActionTime = nextActionAt(approval);
    return nextActionTime !== null && nextActionTime.getTime() + graceMs < now.getTime();
  };

  /**
   * The newest pending request is checked in each round. If Temporal does not have its workflow, it has lost its data, was
   * restored to an earlier state, or is a new namespace: all pending ones are checked now.
   */
  async function checkNewest(): Promise<void> {
    const newest = await newestPending(db);
    if (!newest) return;
    const workflowId = approvalWorkflowId(newest.id);
    if ((await withPendingTask(db, [workflowId])).size > 0) return;
    if ((await describeWorkflow(workflowId)).found) return;
    log.warn({ approvalId: newest.id }, 'a pending request has no workflow; all are checked');
    await checkAllPending(db, await readDatabaseTime(db));
  }

  async function reconcileDue(signal: AbortSignal): Promise<number> {
    const now = await readDatabaseTime(db);
    const fromNow = (ms: number) => new Date(now.getTime() + ms);
    return reconcileInBatches({ db, log }, signal, {
      name: 'reconciling an approval request',
      repair: (approval: Approval, hasPendingTask) => repair(approval, hasPendingTask, now),
      workflowIdOf: ({ id }) => approvalWorkflowId(id),
      claimBatch: (limit) =>
        claimApprovalsToReconcile(db, {
          now,
          nextPendingCheckAt: fromNow(PENDING_CHECK_INTERVAL_MS * (0.5 + Math.random() / 2)),
          nextCheckAt: fromNow(graceMs),
          limit,
        }),
    });
  }

  /**
   * Checks every request that is due, until `signal` aborts. Returns the number of repaired
   * requests. Errors: those of `runEach`.
   */
  return async function reconcile(signal: AbortSignal): Promise<number> {
    const steps = [() => checkNewest().then(() => 0), () => reconcileDue(signal)];
    const [, repaired = 0] = await runEach(steps, signal);
    return repaired;
  };
}

/** The time at which the workflow acts without a signal; null while the job runs. */
function nextActionAt({
  status,
  execution,
  expiresAt,
  executeAt,
  closedAt,
}: Approval): Date | null {
  if (status === 'pending') return expiresAt;
  return execution === 'queued' ? (executeAt ?? closedAt) : null;
}
