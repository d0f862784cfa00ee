import type { Work } from '../../db/core/commit.ts';
import { approvalChange } from '../../db/approvals/approvals.ts';
import {
  INVENTORY_APPLY,
  STALE_PLAN,
  type ApprovalStatus,
  type Execution,
} from '../../domain/approvals/approvals.ts';
import type { ApprovalData } from '../../domain/approvals/records.ts';
import { systemCaller, type Caller } from '../../domain/shared/caller.ts';
import type { EventData } from '../../domain/events/events.ts';
import type { PlanDifference } from '../../domain/inventory/frozenPlan.ts';
import type { FinalJobStatus, JobError } from '../../domain/jobs/jobs.ts';
import type { ResourceScope, Rights } from '../../domain/access/scope.ts';
import { approvalWorkflowId } from '../../domain/dispatch/workflowIds.ts';

/** A request as the subject of audit entries and events. */
export const approvalSubject = ({ id }: { id: string }) => ({ type: 'workflow', id });

/**
 * The resource scope that a request belongs to. A site or a device that has moved to another tenant
 * takes no part in it: rights there are none over the request.
 */
export const scopeOfApproval = ({
  tenantId,
  scopeSiteId,
  scopeDeviceId,
}: Pick<ApprovalData, 'tenantId' | 'scopeSiteId' | 'scopeDeviceId'>): ResourceScope => ({
  tenantId,
  siteId: scopeSiteId,
  deviceId: scopeDeviceId,
});

/** A request as the audit log stores it: without its content, which may hold secrets. */
export const approvalSnapshot = (approval: ApprovalData) => ({
  type: approval.type,
  title: approval.title,
  siteId: approval.siteId,
  deviceId: approval.deviceId,
  status: approval.status,
  execution: approval.execution,
  requiredApprovals: approval.requiredApprovals,
  approvalCount: approval.approvalCount,
  jobType: approval.jobType,
  jobTarget: approval.jobTarget,
  typeDigest: approval.typeDigest,
  jobId: approval.jobId,
  contentHash: approval.contentHash,
  expiresAt: approval.expiresAt,
  executeAt: approval.executeAt,
  error: approval.error?.code ?? null,
});

/** The data of an event about a request. */
export const approvalEventData = (approval: ApprovalData): EventData<'workflow.approved'> => ({
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

/** A copy of a request with changed values. */
export const withChanges = (
  approval: ApprovalData,
  values: Partial<ApprovalData>,
): ApprovalData => ({ ...approval, ...values });

/** The payload of the bound job. */
export const boundPayload = ({
  jobType,
  jobPayload,
  mutations,
}: Pick<ApprovalData, 'jobType' | 'jobPayload' | 'mutations'>): Record<string, unknown> =>
  jobType === INVENTORY_APPLY ? { mutations } : (jobPayload ?? {});

/** The caller for steps that the platform takes in the name of the requester. */
export const callerForRequester = (
  { id, tenantId, authority }: Pick<ApprovalData, 'id' | 'tenantId' | 'authority'>,
  rights?: Rights,
): Caller => ({
  ...systemCaller(tenantId, approvalWorkflowId(id)),
  actorId: authority.actorId,
  ...(rights && { rights }),
});

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

/** The outcome of an execution. */
export type ExecutionOutcome = {
  execution: Extract<Execution, 'succeeded' | 'failed' | 'stale'>;
  error: JobError | null;
  difference?: PlanDifference | null;
  denied?: boolean;
};

/** Adds the outcome of an execution to a commit. The row of the request must be locked. */
export function finishExecution(
  work: Work,
  approval: ApprovalData,
  { execution, error, difference, denied = false }: ExecutionOutcome,
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
  const after = withChanges(approval, { execution, error });
  const verb = { succeeded: 'succeed', failed: 'fail', stale: 'stale' }[execution];
  work.audit(`workflow.${verb}`, approvalSubject(approval), {
    before: approvalSnapshot(approval),
    after: approvalSnapshot(after),
    ...(denied && { outcome: 'denied' }),
    ...(execution !== 'succeeded' && !denied && { outcome: 'failed' }),
  });
  work.emit('workflow.executed', approvalSubject(approval), approvalEventData(after));
}

/** The outcome of the execution, from the outcome of the bound job. */
export function executionOutcomeOf({
  status,
  error,
  type,
}: {
  status: FinalJobStatus;
  error: JobError | null;
  type: string;
}): ExecutionOutcome {
  if (status === 'succeeded') return { execution: 'succeeded', error: null };
  if (status === 'cancelled')
    return {
      execution: 'failed',
      error: { code: 'job_cancelled', message: 'The job was cancelled' },
    };
  return {
    execution: type === INVENTORY_APPLY && error?.code === STALE_PLAN ? 'stale' : 'failed',
    error,
  };
}
