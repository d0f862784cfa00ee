import { decisionsOf } from '../../db/approvals/approvals.ts';
import type { Knex } from '../../db/core/knex.ts';
import { INVENTORY_APPLY, contentHash, STALE_PLAN } from '../../domain/approvals/approvals.ts';
import type { ApprovalData } from '../../domain/approvals/records.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { mayCreateJob } from '../../domain/jobs/jobRights.ts';
import { planDifference } from '../../domain/inventory/frozenPlan.ts';
import type { Rights } from '../../domain/access/scope.ts';
import { allowsJobType } from '../../domain/access/tokenScope.ts';
import type { Access } from '../access/access.ts';
import { callerForRequester, boundPayload, type ExecutionOutcome } from './approvalAudit.ts';
import type { Asker, InventoryQuestions } from '../inventory/questions.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import type { UserRights } from '../access/rights.ts';

export type ApprovalChecks = ReturnType<typeof createApprovalChecks>;

/** Why a request cannot be executed now. */
export type Blocker = ExecutionOutcome & { error: { code: string; message: string } };

const failedExecution = (code: string, message: string): Blocker => ({
  execution: 'failed',
  error: { code, message },
});

type Deps = {
  db: Knex;
  access: Access;
  rights: UserRights;
  jobTypes: JobTypes;
  questions: InventoryQuestions;
};

/** Checks whether a pending or approved request could be executed now. */
export function createApprovalChecks({ db, access, rights, jobTypes, questions }: Deps) {
  /** True if the requester still holds every permission that the execution needs. */
  function isAllowed({ jobType, plan, tenantId }: ApprovalData, held: Rights): boolean {
    const requiredScopes = plan?.requiredScopes ?? [];
    if (!requiredScopes.every((scope) => access.holds(held, 'inventory:write', scope)))
      return false;
    if (jobType !== null && !allowsJobType(held, jobType)) return false;
    const type = jobType === null ? undefined : jobTypes.find(jobType);
    if (jobType === INVENTORY_APPLY || !type) return true;
    return mayCreateJob(held, type, { tenantId });
  }

  function findBindingBlocker(approval: ApprovalData): Blocker | null {
    const { jobType } = approval;
    if (jobType === null) return null;
    const type = jobTypes.find(jobType);
    if (type?.createdOnlyBy !== null)
      return failedExecution('unknown_job_type', `The job type ${jobType} does not exist any more`);
    // Validation fills in defaults, so it gets a copy.
    return jobTypes.isValidPayload(type, structuredClone(boundPayload(approval)))
      ? null
      : failedExecution(
          'payload_invalid',
          `The payload is not valid for the job type ${jobType} any more`,
        );
  }

  async function findPlanBlocker(
    approval: ApprovalData,
    held: Rights,
    asker: Asker | undefined,
  ): Promise<Blocker | null> {
    if (!approval.mutations || !approval.plan) return null;
    try {
      const difference = planDifference(
        approval.plan,
        await questions.dryRun(callerForRequester(approval, held), approval.mutations, asker),
      );
      if (!difference) return null;
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
      if (!isAllowed(approval, held)) {
        return {
          ...failedExecution(
            'permission_lost',
            `${approval.authority.actorId} no longer holds the permissions that the request needs`,
          ),
          denied: true,
        };
      }
      return findBindingBlocker(approval) ?? (await findPlanBlocker(approval, held, asker));
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
