import { decisionsOf } from '../db/approvals/approvals.ts';
import type { Knex } from '../db/core/knex.ts';
import type { Approval } from '../db/models/Approval.ts';
import { APPLY, contentHash, STALE_PLAN } from '../domain/approvals/approvals.ts';
import { AppError } from '../domain/shared/errors.ts';
import { permissionsFor } from '../domain/jobType.ts';
import { planDifference } from '../domain/inventory/frozenPlan.ts';
import type { Rights } from '../domain/access/scope.ts';
import type { Access } from './access.ts';
import { asRequester, boundPayload, type ExecutionEnd } from './approvals/approvalAudit.ts';
import type { InventoryWrites } from './inventory/writes.ts';
import type { JobTypes } from './jobTypes/registry.ts';
import type { UserRights } from './access/rights.ts';

export type ApprovalChecks = ReturnType<typeof createApprovalChecks>;

/** Why a request would not be carried out as it stands. */
export type Hindrance = ExecutionEnd & { error: { code: string; message: string } };

const failed = (code: string, message: string): Hindrance => ({
  execution: 'failed',
  error: { code, message },
});

type Deps = {
  db: Knex;
  access: Access;
  rights: UserRights;
  jobTypes: JobTypes;
  writes: InventoryWrites;
};

/** Looks whether a request that is approved, or may be, can be carried out now. */
export function createApprovalChecks({ db, access, rights, jobTypes, writes }: Deps) {
  /** A request never does what its requester could not. */
  function isAllowed({ jobType, plan, tenantId }: Approval, held: Rights): boolean {
    const places = plan?.places ?? [];
    if (!places.every((place) => access.holds(held, 'inventory:write', place))) return false;
    const type = jobTypes.find(jobType ?? '');
    if (jobType === APPLY || !type) return true;
    return permissionsFor(type).every((permission) => access.holds(held, permission, { tenantId }));
  }

  function bindingHindrance(approval: Approval): Hindrance | null {
    const { jobType } = approval;
    if (jobType === null) return null;
    const type = jobTypes.find(jobType);
    if (type?.onlyThrough !== null)
      return failed('unknown_job_type', `There are no jobs of the type ${jobType} any more`);
    // The check fills in defaults: into a copy.
    return jobTypes.accepts(type, structuredClone(boundPayload(approval)))
      ? null
      : failed(
          'payload_invalid',
          `The payload is not what jobs of the type ${jobType} want any more`,
        );
  }

  async function planHindrance(approval: Approval, held: Rights): Promise<Hindrance | null> {
    if (!approval.mutations || !approval.plan) return null;
    try {
      const difference = planDifference(
        approval.plan,
        await writes.rehearse(asRequester(approval, held), approval.mutations),
      );
      if (!difference) return null;
      return {
        execution: 'stale',
        error: {
          code: STALE_PLAN,
          message: 'What would happen now differs from what was asked for',
        },
        difference,
      };
    } catch (error) {
      // Being overtaken by others is no reason: it is looked at again.
      if (error instanceof AppError && error.code === 'limit_reached')
        return failed('cannot_plan', error.message);
      throw error;
    }
  }

  return {
    /** Why it would not be carried out now; null when it would. */
    async hindranceOf(approval: Approval): Promise<Hindrance | null> {
      const held = await rights.ofAuthority(approval.authority);
      if (contentHash(approval.contentKey, approval) !== approval.contentHash)
        return failed('content_changed', 'The request is not what it was when it was made');
      if (!isAllowed(approval, held)) {
        return {
          ...failed(
            'permission_lost',
            `${approval.authority.actorId} may no longer do what the request asks for`,
          ),
          denied: true,
        };
      }
      return bindingHindrance(approval) ?? (await planHindrance(approval, held));
    },

    /** Whether those whose word counts have seen what would run. */
    async isCovered({ id, contentHash: hash, requiredApprovals }: Approval): Promise<boolean> {
      const words = await decisionsOf(db, id);
      return (
        words.filter(({ outcome, contentHash: seen }) => outcome === 'approved' && seen === hash)
          .length >= requiredApprovals
      );
    },
  };
}
