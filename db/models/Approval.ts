import { Model, snakeCaseMappers } from 'objection';
import type {
  ApprovalStatus,
  Execution,
  RecordedOutcome,
} from '../../domain/approvals/approvals.ts';
import type { Authority } from '../../domain/shared/caller.ts';
import type { FrozenPlan, PlanDifference } from '../../domain/inventory/frozenPlan.ts';
import type { Mutation } from '../../domain/inventory/planning.ts';
import type { JobError } from '../../domain/jobs/jobs.ts';
import type { TargetRef } from '../../domain/jobs/targets.ts';

/** A row of `approvals`: a request for decisions, and the execution of its bound job. */
export class Approval extends Model {
  static override tableName = 'approvals';
  static override jsonAttributes = [
    'payload',
    'jobPayload',
    'jobTarget',
    'mutations',
    'plan',
    'error',
    'difference',
    'authority',
    'requesterNames',
  ];
  static override columnNameMappers = snakeCaseMappers();

  declare id: string;
  declare tenantId: string;
  declare siteId: string | null;
  declare deviceId: string | null;
  /**
   * The site and the device as long as they are of the request's tenant; the database sets them. An open
   * request follows its device to another site.
   */
  declare scopeSiteId: string | null;
  declare scopeDeviceId: string | null;
  declare type: string;
  declare title: string;
  declare payload: Record<string, unknown>;
  declare status: ApprovalStatus;
  declare execution: Execution;
  declare requiredApprovals: number;
  declare approvalCount: number;
  /** The type of the bound job; null if the request asks for a decision only. */
  declare jobType: string | null;
  declare jobPayload: Record<string, unknown> | null;
  /** What the bound job is about; null for a job type without targets. */
  declare jobTarget: TargetRef | null;
  declare typeDigest: string | null;
  /** The requested change of the inventory, and the plan of it. */
  declare mutations: Mutation[] | null;
  declare plan: FrozenPlan | null;
  declare contentKey: string;
  declare contentHash: string;
  declare expiresAt: Date;
  /** The bound job does not start before this time. */
  declare executeAt: Date | null;
  /** The number of reminders sent. Reminders that were missed count as one sent together. */
  declare reminders: number;
  /** How often its workflow was started again because it had failed. */
  declare restarts: number;
  declare jobId: string | null;
  /** Why the execution was blocked or failed. */
  declare error: JobError | null;
  /** How the plan at execution differed from the approved plan; set if the execution is stale. */
  declare difference: PlanDifference | null;
  declare createdBy: string;
  /** The names that the requester was known by, normalized. */
  declare requesterNames: string[];
  /** Whose rights the bound job runs with. */
  declare authority: Authority;
  declare closedBy: string | null;
  declare closeComment: string | null;
  declare closedAt: Date | null;
  declare executedAt: Date | null;
  declare checkAt: Date;
  declare createdAt: Date;
  declare updatedAt: Date;
  declare version: number;
}

/** A row of `approval_assignees`: a user or a role that may decide. */
export class ApprovalAssignee extends Model {
  static override tableName = 'approval_assignees';
  static override idColumn = ['approval_id', 'kind', 'assignee_id'];
  static override columnNameMappers = snakeCaseMappers();

  declare approvalId: string;
  declare kind: 'user' | 'role';
  declare assigneeId: string;
}

/**
 * A row of `approval_decisions`: the decision of one person, or the cancellation of the request.
 */
export class ApprovalDecision extends Model {
  static override tableName = 'approval_decisions';
  static override jsonAttributes = ['actorNames'];
  static override columnNameMappers = snakeCaseMappers();

  declare id: string;
  declare approvalId: string;
  declare actorId: string;
  declare actorNames: string[];
  declare outcome: RecordedOutcome;
  declare comment: string | null;
  /** The hash of the content that was decided on. */
  declare contentHash: string;
  declare decidedAt: Date;
}

/** A row of `approval_comments`. `number` starts at 1 within a request. */
export class ApprovalComment extends Model {
  static override tableName = 'approval_comments';
  static override idColumn = ['approval_id', 'number'];
  static override columnNameMappers = snakeCaseMappers();

  declare approvalId: string;
  declare number: number;
  declare actorId: string;
  declare text: string;
  declare createdAt: Date;
}
