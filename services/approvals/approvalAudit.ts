import type { EventData } from '../../domain/events/events.ts';
import type { ApprovalData } from '../../domain/approvals/records.ts';

/** A request as the subject of audit entries and events. */
export const approvalSubject = ({ id }: { id: string }) => ({ type: 'workflow', id });

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
