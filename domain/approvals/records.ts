import type { ResourceScope, Rights } from '../access/scope.ts';
import { approvalWorkflowId } from '../dispatch/workflowIds.ts';
import type { FrozenPlan, PlanDifference } from '../inventory/frozenPlan.ts';
import type { Mutation } from '../inventory/planning.ts';
import type { JobError } from '../jobs/jobs.ts';
import type { TargetRef } from '../jobs/targets.ts';
import { systemCaller, type Authority, type Caller } from '../shared/caller.ts';
import {
  INVENTORY_APPLY,
  type ApprovalStatus,
  type DecisionOutcome,
  type Execution,
} from './approvals.ts';

/** A request as it is stored: what is requested, its decisions and the execution of its job. */
export type ApprovalData = {
  id: string;
  tenantId: string;
  siteId: string | null;
  deviceId: string | null;
  /**
   * The site and the device as long as they are of the request's tenant; the database sets them. An open
   * request follows its device to another site.
   */
  scopeSiteId: string | null;
  scopeDeviceId: string | null;
  type: string;
  title: string;
  payload: Record<string, unknown>;
  status: ApprovalStatus;
  execution: Execution;
  requiredApprovals: number;
  approvalCount: number;
  /** The type of the bound job; null if the request asks for a decision only. */
  jobType: string | null;
  jobPayload: Record<string, unknown> | null;
  /** What the bound job is about; null for a job type without targets. */
  jobTarget: TargetRef | null;
  /** The version of a job type of runners that the request is about; null for other types. */
  typeDigest: string | null;
  /** The requested change of the inventory, and the plan of it. */
  mutations: Mutation[] | null;
  plan: FrozenPlan | null;
  /** The key of `contentHash`. */
  contentKey: string;
  contentHash: string;
  expiresAt: Date;
  /** The bound job does not start before this time. */
  executeAt: Date | null;
  /** The number of reminders sent. Reminders that were missed count as one sent together. */
  reminders: number;
  jobId: string | null;
  /** Why the execution was blocked or failed. */
  error: JobError | null;
  /** How the plan at execution differed from the approved plan; set if the execution is stale. */
  difference: PlanDifference | null;
  createdBy: string;
  /** The names that the requester was known by: see `recordedNames`. */
  requesterNames: string[];
  /** Whose rights the bound job runs with. */
  authority: Authority;
  closedBy: string | null;
  closeComment: string | null;
  closedAt: Date | null;
  executedAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
  version: number;
};

/** The decision of one person on a request. */
export type DecisionData = {
  id: string;
  approvalId: string;
  actorId: string;
  /** The names that the decider was known by: see `recordedNames`. */
  actorNames: string[];
  outcome: DecisionOutcome;
  comment: string | null;
  /** The hash of the content that was decided on. */
  contentHash: string;
  decidedAt: Date;
};

/** A comment on a request. `number` starts at 1 within the request. */
export type CommentData = {
  number: number;
  actorId: string;
  text: string;
  createdAt: Date;
};

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

/** The scope that was asked for: what the request does is inside it, wherever its records move. */
export const requestedScope = ({
  tenantId,
  siteId,
  deviceId,
}: Pick<ApprovalData, 'tenantId' | 'siteId' | 'deviceId'>): ResourceScope => ({
  tenantId,
  siteId,
  deviceId,
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
