import { Model, snakeCaseMappers } from 'objection';
import type { ApprovalStatus, DecisionOutcome, Execution } from '../../domain/approvals/approvals.ts';
import type { Authority } from '../../domain/shared/caller.ts';
import type { FrozenPlan, PlanDifference } from '../../domain/inventory/frozenPlan.ts';
import type { Mutation } from '../../domain/inventory/planning.ts';
import type { JobError } from '../../domain/jobs/jobs.ts';

/** A row of `approvals`: a request that waits for a decision, and what became of it. */
export class Approval extends Model {
  static override tableName = 'approvals';
  static override jsonAttributes = [
    'payload',
    'jobPayload',
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
  declare type: string;
  declare title: string;
  declare payload: Record<string, unknown>;
  declare status: ApprovalStatus;
  declare execution: Execution;
  declare requiredApprovals: number;
  declare approvalCount: number;
  /** The job that runs when it is approved; null for a decision alone. */
  declare jobType: string | null;
  declare jobPayload: Record<string, unknown> | null;
  /** The change of the inventory as it was asked for, and what it would do. */
  declare mutations: Mutation[] | null;
  declare plan: FrozenPlan | null;
  declare contentKey: string;
  declare contentHash: string;
  declare expiresAt: Date;
  /** Not before this is it carried out. */
  declare executeAt: Date | null;
  /** How many reminders were sent, or were due while nobody could. */
  declare reminders: number;
  declare jobId: string | null;
  /** Why it was not carried out, or failed. */
  declare error: JobError | null;
  /** How what would have happened differed from what was approved. */
  declare difference: PlanDifference | null;
  declare createdBy: string;
  /** Names by which the requester was known. */
  declare requesterNames: string[];
  /** With whose rights it is carried out. */
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

/** A row of `approval_assignees`: somebody who may decide, by name or by role. */
export class ApprovalAssignee extends Model {
  static override tableName = 'approval_assignees';
  static override idColumn = ['approval_id', 'kind', 'assignee_id'];
  static override columnNameMappers = snakeCaseMappers();

  declare approvalId: string;
  declare kind: 'user' | 'role';
  declare assigneeId: string;
}

/** A row of `approval_decisions`: one person's word. */
export class ApprovalDecision extends Model {
  static override tableName = 'approval_decisions';
  static override idColumn = ['approval_id', 'actor_id'];
  static override jsonAttributes = ['actorNames'];
  static override columnNameMappers = snakeCaseMappers();

  declare approvalId: string;
  declare actorId: string;
  declare actorNames: string[];
  declare outcome: DecisionOutcome;
  declare comment: string | null;
  /** The hash of what was decided about. */
  declare contentHash: string;
  declare decidedAt: Date;
}

/** A row of `approval_comments`; `number` counts from 1 within a request. */
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
