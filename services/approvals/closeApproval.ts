import { approvalChange } from '../../db/approvals/approvals.ts';
import type { Work } from '../../db/core/commit.ts';
import type { ApprovalStatus } from '../../domain/approvals/approvals.ts';
import { withChanges, type ApprovalData } from '../../domain/approvals/records.ts';
import { approvalEventData, approvalSubject } from './approvalAudit.ts';

/** How a request is closed. The reconciler checks it `graceMs` after its next step is due. */
export type ApprovalClosure = {
  status: Exclude<ApprovalStatus, 'pending'>;
  closedBy: string;
  comment: string | null;
  graceMs?: number;
};

/**
 * Adds the closing of a request to a commit. Its row must be locked. Returns the closed request.
 */
export function closeApproval(
  work: Work,
  approval: ApprovalData,
  { status, closedBy, comment, graceMs = 0 }: ApprovalClosure,
): ApprovalData {
  const approved = status === 'approved';
  const execution = approved && approval.jobType !== null ? ('queued' as const) : ('none' as const);
  const approvalCount = approval.approvalCount + (approved ? 1 : 0);
  work.change(
    approvalChange(
      approval.id,
      { status: approval.status, execution: approval.execution },
      {
        status,
        execution,
        approval_count: approvalCount,
        closed_by: closedBy,
        close_comment: comment,
        closed_at: work.now,
        updated_at: work.now,
        check_at: new Date(
          Math.max(work.now.getTime(), approval.executeAt?.getTime() ?? 0) + graceMs,
        ),
      },
    ),
  );
  return withChanges(approval, { status, execution, approvalCount });
}

/** Adds the event about a closed request to a commit. */
export const emitClosed = (work: Work, after: ApprovalData): void => {
  if (after.status !== 'pending')
    work.emit(`workflow.${after.status}`, approvalSubject(after), approvalEventData(after));
};
