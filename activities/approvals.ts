import type { Log } from '../platform/log.ts';
import type { ApprovalExecution } from '../services/approvals/execution.ts';
import type { ApprovalState } from '../domain/dispatch/tasks.ts';
import { withLimitedAttempts } from './heartbeat.ts';
import { sanitizeErrors } from './sanitizeErrors.ts';

export type ApprovalActivities = ReturnType<typeof createApprovalActivities>;

/** The steps of the approval workflow. All but `createBoundJob` are short local activities. */
export const createApprovalActivities = ({
  execution,
  log,
}: {
  execution: ApprovalExecution;
  log: Log;
}) => ({
  loadApproval: (approvalId: string): Promise<ApprovalState> =>
    sanitizeErrors(log, () => execution.loadState(approvalId)),

  /** True if the request has a committed decision or cancellation with this id. */
  confirmDecision: (approvalId: string, decisionId: string): Promise<boolean> =>
    sanitizeErrors(log, () => execution.confirmDecision(approvalId, decisionId)),

  sendApprovalReminder: (approvalId: string): Promise<void> =>
    sanitizeErrors(log, () => execution.sendReminder(approvalId)),

  expireApproval: (approvalId: string): Promise<void> =>
    sanitizeErrors(log, () => execution.expire(approvalId)),

  /** Returns the milliseconds left until `executeAt`, or 0. */
  createBoundJob: (approvalId: string): Promise<number> =>
    withLimitedAttempts(log, {
      run: () => execution.createBoundJob(approvalId),
      fail: (error) => execution.failExecution(approvalId, error).then(() => 0),
    }),

  cancelApproval: (approvalId: string): Promise<void> =>
    sanitizeErrors(log, () =>
      execution.cancelWithJob(approvalId, 'the workflow was cancelled in Temporal'),
    ),
});
