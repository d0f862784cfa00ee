import type { Work } from '../../db/commit.ts';
import { approvalChange } from '../../db/approvals/approvals.ts';
import { Approval } from '../../db/models/Approval.ts';
import { APPLY, STALE_PLAN, type ApprovalStatus, type Execution } from '../../domain/approvals/approvals.ts';
import { systemCaller, type Caller } from '../../domain/shared/caller.ts';
import type { EventData } from '../../domain/events/events.ts';
import type { PlanDifference } from '../../domain/inventory/frozenPlan.ts';
import type { FinalJobStatus, JobError } from '../../domain/jobs/jobs.ts';
import type { Place, Rights } from '../../domain/access/scope.ts';
import { approvalWorkflowId, type DispatchTask } from '../../temporal/contracts.ts';

/** A request as the subject of audit entries and events. */
export const approvalSubject = ({ id }: { id: string }) => ({ type: 'workflow', id });

/** Where a request stands. */
export const placeOfApproval = ({
  tenantId,
  siteId,
  deviceId,
}: Pick<Approval, 'tenantId' | 'siteId' | 'deviceId'>): Place => ({ tenantId, siteId, deviceId });

/** A request as the audit trail keeps it: without what it carries, which may hold secrets. */
export const approvalView = (approval: Approval) => ({
  type: approval.type,
  title: approval.title,
  siteId: approval.siteId,
  deviceId: approval.deviceId,
  status: approval.status,
  execution: approval.execution,
  requiredApprovals: approval.requiredApprovals,
  approvalCount: approval.approvalCount,
  jobType: approval.jobType,
  jobId: approval.jobId,
  contentHash: approval.contentHash,
  expiresAt: approval.expiresAt,
  executeAt: approval.executeAt,
  error: approval.error?.code ?? null,
});

/** What an event tells of a request. */
export const approvalEvent = (approval: Approval): EventData<'workflow.approved'> => ({
  approvalId: approval.id,
  type: approval.type,
  title: approval.title,
  siteId: approval.siteId,
  deviceId: approval.deviceId,
  status: approval.status,
  execution: approval.execution,
  requestedBy: approval.createdBy,
  requiredApprovals: approval.requiredApprovals,
  approvals: approval.approvalCount,
  jobType: approval.jobType,
  jobId: approval.jobId,
  error: approval.error?.code ?? null,
  expiresAt: approval.expiresAt.toISOString(),
  executeAt: approval.executeAt?.toISOString() ?? null,
});

/** A request as it will be after a change. */
export const changed = (approval: Approval, values: Partial<Approval>): Approval =>
  Object.assign(new Approval(), approval, values);

/** The payload of the job that is bound to a request. */
export const boundPayload = ({
  jobType,
  jobPayload,
  mutations,
}: Pick<Approval, 'jobType' | 'jobPayload' | 'mutations'>): Record<string, unknown> =>
  jobType === APPLY ? { mutations } : (jobPayload ?? {});

/** What the platform does for a request, in the name of whoever made it. */
export const asRequester = (
  { id, tenantId, authority }: Pick<Approval, 'id' | 'tenantId' | 'authority'>,
  rights?: Rights,
): Caller => ({
  ...systemCaller(tenantId, approvalWorkflowId(id)),
  actorId: authority.actorId,
  ...(rights && { rights }),
});

/** How a request is closed. `graceMs`: how soon after it is due the reconciler looks. */
export type Closing = {
  status: Exclude<ApprovalStatus, 'pending'>;
  closedBy: string;
  comment: string | null;
  graceMs?: number;
};

/** Adds to a commit that a request is closed, and how. Its row is locked. Returns it as it is then. */
export function closeApproval(
  work: Work<DispatchTask>,
  approval: Approval,
  { status, closedBy, comment, graceMs = 0 }: Closing,
): Approval {
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
  return changed(approval, { status, execution, approvalCount });
}

/** Adds to a commit that consumers are told how a request was closed. */
export const tellClosed = (work: Work<DispatchTask>, after: Approval): void => {
  if (after.status !== 'pending')
    work.emit(`workflow.${after.status}`, approvalSubject(after), approvalEvent(after));
};

/** What became of a request that was approved. */
export type ExecutionEnd = {
  execution: Extract<Execution, 'succeeded' | 'failed' | 'stale'>;
  error: JobError | null;
  difference?: PlanDifference | null;
  denied?: boolean;
};

/** Adds to a commit how the execution of a request ended. Its row is locked. */
export function endExecution(
  work: Work<DispatchTask>,
  approval: Approval,
  { execution, error, difference, denied = false }: ExecutionEnd,
): void {
  work.change(
    approvalChange(
      approval.id,
      { status: 'approved', execution: approval.execution },
      {
        execution,
        error: error && JSON.stringify(error),
        executed_at: work.now,
        updated_at: work.now,
        ...(difference && { difference: JSON.stringify(difference) }),
      },
    ),
  );
  const after = changed(approval, { execution, error });
  const verb = { succeeded: 'succeed', failed: 'fail', stale: 'stale' }[execution];
  work.audit(`workflow.${verb}`, approvalSubject(approval), {
    before: approvalView(approval),
    after: approvalView(after),
    ...(denied && { outcome: 'denied' }),
    ...(execution !== 'succeeded' && !denied && { outcome: 'failed' }),
  });
  work.emit('workflow.executed', approvalSubject(approval), approvalEvent(after));
}

/** How the end of a bound job is the end of its request. */
export function endOfJob({
  status,
  error,
  type,
}: {
  status: FinalJobStatus;
  error: JobError | null;
  type: string;
}): ExecutionEnd {
  if (status === 'succeeded') return { execution: 'succeeded', error: null };
  if (status === 'cancelled')
    return {
      execution: 'failed',
      error: { code: 'job_cancelled', message: 'The job was cancelled' },
    };
  return { execution: type === APPLY && error?.code === STALE_PLAN ? 'stale' : 'failed', error };
}
