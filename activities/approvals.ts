import type { Log } from '../platform/log.ts';
import type { ApprovalRuns } from '../services/approvals/execution.ts';
import type { ApprovalStep } from '../temporal/contracts.ts';
import { beating, withoutData } from './withoutData.ts';

export type ApprovalActivities = ReturnType<typeof createApprovalActivities>;

export const createApprovalActivities = ({ runs, log }: { runs: ApprovalRuns; log: Log }) => ({
  lookAtApproval: (approvalId: string): Promise<ApprovalStep> =>
    withoutData(log, () => runs.look(approvalId)),

  remindOfApproval: (approvalId: string): Promise<void> =>
    withoutData(log, () => runs.remind(approvalId)),

  expireApproval: (approvalId: string): Promise<void> =>
    withoutData(log, () => runs.expire(approvalId)),

  /** Resolves with the milliseconds by which it came too early, 0 when it has done what there was to do. */
  executeApproval: (approvalId: string): Promise<number> =>
    beating(log, () => runs.execute(approvalId)),

  closeApproval: (approvalId: string): Promise<void> =>
    withoutData(log, () => runs.close(approvalId, 'the run was cancelled in Temporal')),
});
