import { Type } from 'typebox';
import type { WriteUnaudited } from '../../../db/core/commit.ts';
import type { Knex } from '../../../db/core/knex.ts';
import { findApprovedPlan, storeDifferenceOf } from '../../../db/approvals/approvals.ts';
import type { Approval } from '../../../db/models/Approval.ts';
import { INVENTORY_APPLY, STALE_PLAN } from '../../../domain/approvals/approvals.ts';
import { requestedScope } from '../../../domain/approvals/records.ts';
import { Mutations } from '../../../domain/inventory/mutations.ts';
import type { Mutation } from '../../../domain/inventory/planning.ts';
import type { JobSource } from '../../../domain/jobs/jobs.ts';
import { JobFailure, defineJobType, type JobType } from '../../../domain/jobs/jobType.ts';
import { StalePlan, type ApprovedChanges } from '../../inventory/approvedChanges.ts';
import { applyFailure } from './applyFailure.ts';
import { counted } from '../../../domain/shared/counted.ts';

type Payload = { mutations: Mutation[] };

export type InventoryApplyDeps = {
  db: Knex;
  writeUnaudited: WriteUnaudited;
  approvedChanges: ApprovedChanges;
};

/**
 * Applies mutations, all or none. For an approval request, the changes are applied only if they are
 * exactly what was approved.
 */
export function inventoryApply({
  db,
  writeUnaudited,
  approvedChanges,
}: InventoryApplyDeps): JobType<Payload> {
  const findApproval = async ({ kind, id }: JobSource) =>
    kind === 'approval' && id !== null ? await findApprovedPlan(db, id) : undefined;

  const storeDifference = ({ id }: Pick<Approval, 'id'>, { difference }: StalePlan) =>
    writeUnaudited((on) => storeDifferenceOf(on, id, difference));

  return defineJobType<Payload>({
    name: INVENTORY_APPLY,
    summary: 'Applies changes of the inventory, all or none',
    payload: Type.Object({ mutations: Mutations }, { additionalProperties: false }),
    permission: 'inventory:write',
    authorizesItself: true,
    lane: 'activity',
    timeoutMs: 300_000,
    retry: { maxAttempts: 5 },
    run: async ({ mutations }, tools) => {
      const approval = await findApproval(tools.source);
      const approved = approval?.plan
        ? { plan: approval.plan, resourceScope: requestedScope(approval) }
        : null;
      try {
        const applied = await approvedChanges.apply(tools, mutations, approved);
        tools.log(
          'info',
          `${counted(applied.changes.length + applied.hiddenChanges, 'record')} changed`,
        );
        return applied;
      } catch (error) {
        if (!(error instanceof StalePlan)) throw applyFailure(error);
        if (approval) await storeDifference(approval, error);
        throw new JobFailure(STALE_PLAN, error.message, { retryable: false });
      }
    },
  });
}
