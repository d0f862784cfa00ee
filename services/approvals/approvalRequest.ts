import type { TargetRef } from '../../domain/jobs/targets.ts';
import type { Mutation } from '../../domain/inventory/planning.ts';

/**
 * A requested approval. Without `jobType` the mutations are applied. Without both, nothing runs
 * after the approval.
 */
export type ApprovalRequest = {
  type: string;
  title: string;
  payload: Record<string, unknown>;
  assignedUserIds: string[];
  assignedRoleIds: string[];
  tenantId?: string;
  siteId?: string;
  deviceId?: string;
  jobType?: string;
  jobPayload?: Record<string, unknown>;
  jobTarget?: TargetRef | null;
  mutations?: Mutation[];
  requiredApprovals?: number;
  expiresAt?: Date;
  executeAt?: Date;
};
