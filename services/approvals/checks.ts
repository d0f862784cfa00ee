import { decisionsOf } from '../../db/approvals/approvals.ts';
import type { Knex } from '../../db/core/knex.ts';
import {
  INVENTORY_APPLY,
  contentHash,
  STALE_PLAN,
  STALE_TYPE,
} from '../../domain/approvals/approvals.ts';
import {
  boundPayload,
  callerForRequester,
  requestedScope,
  type ApprovalData,
} from '../../domain/approvals/records.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { mayCreateJob } from '../../domain/jobs/jobRights.ts';
import { planDifference } from '../../domain/inventory/frozenPlan.ts';
import type { JobType } from '../../domain/jobs/jobType.ts';
import { scopeOfTarget, type Target } from '../../domain/jobs/targets.ts';
import { contains, type ResourceScope, type Rights } from '../../domain/access/scope.ts';
import { allowsJobType } from '../../domain/access/tokenScope.ts';
import type { Access } from '../access/access.ts';
import type { ExecutionOutcome } from './finishExecution.ts';
import type { Asker, InventoryQuestions } from '../inventory/questions.ts';
import type { JobReferences } from '../jobs/payloadReferences.ts';
import type { JobTargets } from '../jobs/targets.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import type { UserRights } from '../access/rights.ts';

export type ApprovalChecks = ReturnType<typeof createApprovalChecks>;

/** Why a request cannot be executed now. */
export type Blocker = ExecutionOutcome & { error: { code: string; message: string } };

const failedExecution = (code: string, message: string): Blocker => ({
  execution: 'failed',
  error: { code, message },
});

/** The blocker of a requester who may not do what the request asks for any more. */
export const permissionLost = ({ authority }: ApprovalData): Blocker => ({
  ...failedExecution(
    'permission_lost',
    `${authority.actorId} no longer holds the permissions that the request needs`,
  ),
  denied: true,
});

type Deps = {
  db: Knex;
  access: Access;
  rights: UserRights;
  jobTypes: JobTypes;
  jobTargets: JobTargets;
  jobReferences: JobReferences;
  questions: InventoryQuestions;
};

export const TARGET_NOT_FOUND = failedExecution(
  'target_not_found',
  'The target of the job no longer exists, is outside the scope of the request, or may not be read by the requester',
);

/** Checks whether a pending or approved request could be executed now. */
export function createApprovalChecks(deps: Deps) {
  const { db, access, rights, jobTypes, jobTargets, jobReferences, questions } = deps;

  const holdsWrite = (held: Rights, scopes: readonly ResourceScope[]): boolean =>
    scopes.every((scope) => access.holds(held, 'inventory:write', scope));

  /** True if the requester still holds every permission that the change, or its job type, needs. */
  function isAllowed({ jobType, plan }: ApprovalData, held: Rights): boolean {
    if (!holdsWrite(held, plan?.requiredScopes ?? [])) return false;
    return jobType === null || allowsJobType(held, jobType);
  }

  /**
   * The target of the bound job; null for one without. Undefined if there is none any more inside the
   * scope of the request.
   */
  async function findTarget(
    approval: ApprovalData,
    type: JobType,
    held: Rights,
  ): Promise<Target | null | undefined> {
    const { tenantId, jobTarget } = approval;
    const target = await jobTargets.findFor(type, held, { tenantId, target: jobTarget });
    return target && !contains(requestedScope(approval), scopeOfTarget(target))
      ? undefined
      : target;
  }

  /** A type of runners must be enabled, in the version that was requested. */
  function findTypeBlocker({ typeDigest }: ApprovalData, type: JobType): Blocker | null {
    if (type.lane !== 'remote') return null;
    if (!type.isEnabled)
      return failedExecution('job_type_disabled', `The job type ${type.name} is disabled`);
    if (type.digest === typeDigest) return null;
    const message = `The job type ${type.name} has another version than when the job was requested`;
    return { execution: 'stale', error: { code: STALE_TYPE, message } };
  }

  async function findBindingBlocker(approval: ApprovalData, held: Rights): Promise<Blocker | null> {
    const { jobType, tenantId } = approval;
    if (jobType === null) return null;
    await jobTypes.refreshUnknown(jobType);
    const type = jobTypes.find(jobType);
    if (type?.createdOnlyBy !== null)
      return failedExecution('unknown_job_type', `The job type ${jobType} no longer exists`);
    const outdated = findTypeBlocker(approval, type);
    if (outdated) return outdated;
    const target = await findTarget(approval, type, held);
    if (target === undefined) return TARGET_NOT_FOUND;
    const scope = target ? scopeOfTarget(target) : { tenantId };
    if (jobType !== INVENTORY_APPLY && !mayCreateJob(held, type, scope))
      return permissionLost(approval);
    const invalid = jobTypes.payloadError(type, boundPayload(approval));
    if (invalid !== null)
      return failedExecution(
        'payload_invalid',
        `The payload is no longer valid for the job type ${jobType}. ${invalid}`,
      );
    return (await jobReferences.areReadable(held, type, boundPayload(approval)))
      ? null
      : failedExecution(
          'reference_not_found',
          'The payload names a record that no longer exists, or that the requester may not read',
        );
  }

  async function findPlanBlocker(
    approval: ApprovalData,
    held: Rights,
    asker: Asker | undefined,
  ): Promise<Blocker | null> {
    if (!approval.mutations || !approval.plan) return null;
    try {
      const caller = callerForRequester(approval, held);
      const outcome = await questions.dryRun(caller, approval.mutations, asker);
      const difference = planDifference(approval.plan, outcome, requestedScope(approval));
      if (!difference)
        return outcome.planned.every(({ requiredScopes }) => holdsWrite(held, requiredScopes))
          ? null
          : permissionLost(approval);
      return {
        execution: 'stale',
        error: {
          code: STALE_PLAN,
          message: 'The change would do something else than what was requested',
        },
        difference,
      };
    } catch (error) {
      // Any other error, such as a concurrent change, does not block: the check is repeated.
      if (error instanceof AppError && error.code === 'limit_reached')
        return failedExecution('plan_too_large', error.message);
      throw error;
    }
  }

  return {
    /**
     * Why the request cannot be executed now; null if it can. Errors: those of a question of the
     * `asker`.
     */
    async findBlocker(approval: ApprovalData, asker?: Asker): Promise<Blocker | null> {
      const held = await rights.forAuthority(approval.authority);
      if (contentHash(approval.contentKey, approval) !== approval.contentHash)
        return failedExecution(
          'content_mismatch',
          'The content of the request is not what was requested',
        );
      if (!isAllowed(approval, held)) return permissionLost(approval);
      return (
        (await findBindingBlocker(approval, held)) ?? (await findPlanBlocker(approval, held, asker))
      );
    },

    /** The current rights of the requester, as the job of the request is created with. */
    rightsOfRequester: ({ authority }: ApprovalData): Promise<Rights> =>
      rights.forAuthority(authority),

    /** The target of the job of a request that can be executed; undefined as of `TARGET_NOT_FOUND`. */
    async findJobTarget(approval: ApprovalData, held: Rights): Promise<Target | null | undefined> {
      const type = approval.jobType === null ? undefined : jobTypes.find(approval.jobType);
      return type ? findTarget(approval, type, held) : undefined;
    },

    /** True if enough approvals were made for exactly this content. */
    async hasRequiredApprovals({
      id,
      contentHash: currentHash,
      requiredApprovals,
    }: ApprovalData): Promise<boolean> {
      const decisions = await decisionsOf(db, id);
      return (
        decisions.filter(
          ({ outcome, contentHash: approvedHash }) =>
            outcome === 'approved' && approvedHash === currentHash,
        ).length >= requiredApprovals
      );
    },
  };
}
