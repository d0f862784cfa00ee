import { takeUnsettledApprovals } from '../db/approvals/approvals.ts';
import type { Commit } from '../db/commit.ts';
import type { Knex } from '../db/core/knex.ts';
import type { Approval } from '../db/models/Approval.ts';
import { systemCaller } from '../domain/shared/caller.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import {
  approvalWorkflowId,
  startApproval,
  wakeApproval,
  type DispatchTask,
  type InspectWorkflow,
} from '../temporal/contracts.ts';
import type { ApprovalRuns } from './approvals/execution.ts';
import { approvalSubject } from './approvals/approvalAudit.ts';
import { inRounds } from './inRounds.ts';

export type ApprovalReconcile = ReturnType<typeof createApprovalReconcile>;

type Deps = {
  db: Knex;
  commit: Commit<DispatchTask>;
  clock: Clock;
  log: Log;
  runs: ApprovalRuns;
  inspect: InspectWorkflow;
  /** How long what begins is left alone. */
  graceMs: number;
  heartbeatMs: number;
};

/** Those that wait for people are looked at this often. */
const PENDING_MS = 3_600_000;

/**
 * Finds requests that wait, or are to be carried out, and whose run is gone, closed or has not heard of it, so that no
 * decision is without consequence and none waits for ever.
 */
export function createApprovalReconcile({
  db,
  commit,
  clock,
  log,
  runs,
  inspect,
  graceMs,
  heartbeatMs,
}: Deps) {
  const owe = (approval: Approval, action: string, task: DispatchTask): Promise<boolean> =>
    commit(systemCaller(approval.tenantId, 'reconcile'), (work) => {
      work.audit(action, approvalSubject(approval));
      work.dispatch(task);
      return true;
    });

  async function look(approval: Approval, owed: boolean): Promise<boolean> {
    if (owed) return false;
    const state = await inspect(approvalWorkflowId(approval.id));
    if (!state.found)
      return owe(approval, 'workflow.redispatch', startApproval(approval, heartbeatMs));
    if (state.status === 'running')
      return isOverdue(approval) && owe(approval, 'workflow.wake', wakeApproval(approval.id));
    // Its job has an end of its own, which is the end of the request.
    if (approval.execution === 'running') return false;
    log.warn(
      { approvalId: approval.id, status: approval.status, workflow: state },
      'closing a request whose run has ended',
    );
    // What had expired by then has expired; what has not is closed for another reason.
    await runs.expire(approval.id);
    await runs.close(
      approval.id,
      `the run that waited for the decision has ended: ${state.status}`,
    );
    return true;
  }

  const isOverdue = (approval: Approval): boolean => {
    const dueAt = dueOf(approval);
    return dueAt !== null && dueAt.getTime() + graceMs < clock.now().getTime();
  };

  /** One round over everything that is due, until `signal` aborts. Returns how many requests were put right. */
  return function reconcile(signal: AbortSignal): Promise<number> {
    const now = clock.now();
    const after = (ms: number) => new Date(now.getTime() + ms);
    return inRounds({ db, log }, signal, {
      name: 'reconciling a request',
      look,
      workflowIdOf: ({ id }) => approvalWorkflowId(id),
      take: (limit) =>
        takeUnsettledApprovals(db, {
          now,
          pending: after(PENDING_MS),
          begun: after(graceMs),
          limit,
        }),
    });
  };
}

/** When the run of a request has something to do without being told; null while a job runs. */
function dueOf({ status, execution, expiresAt, executeAt, closedAt }: Approval): Date | null {
  if (status === 'pending') return expiresAt;
  return execution === 'queued' ? (executeAt ?? closedAt) : null;
}
