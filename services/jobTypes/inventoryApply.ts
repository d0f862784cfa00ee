import { Type } from 'typebox';
import type { Note } from '../../db/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Approval } from '../../db/models/Approval.ts';
import { APPLY, STALE_PLAN } from '../../domain/approvals/approvals.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { Mutations } from '../../domain/inventory/mutations.ts';
import type { Mutation } from '../../domain/inventory/planning.ts';
import type { JobSource } from '../../domain/jobs/jobs.ts';
import { JobFailure, jobType, type JobType } from '../../domain/jobType.ts';
import { AttemptLost, StalePlan, type InventoryApplies } from '../inventory/applies.ts';

type Payload = { mutations: Mutation[] };

export type ApplyDeps = { db: Knex; note: Note; applies: InventoryApplies };

/** Makes changes of the inventory, all or none. For a request that was approved it makes what was approved, or nothing. */
export function inventoryApply({ db, note, applies }: ApplyDeps): JobType<Payload> {
  const requestOf = async ({ kind, id }: JobSource) =>
    kind === 'approval' && id !== null
      ? await Approval.query(db).findById(id).select('id', 'plan')
      : undefined;

  const keepDifference = ({ id }: Approval, { difference }: StalePlan) =>
    note((on) =>
      on('approvals')
        .where({ id, execution: 'running' })
        .update({ difference: JSON.stringify(difference) }),
    );

  return jobType<Payload>({
    name: APPLY,
    summary: 'Makes changes of the inventory, all of them or none',
    payload: Type.Object({ mutations: Mutations }, { additionalProperties: false }),
    permission: 'inventory:write',
    checksRights: true,
    lane: 'activity',
    timeoutMs: 300_000,
    retry: { maxAttempts: 5 },
    run: async ({ mutations }, tools) => {
      const request = await requestOf(tools.source);
      try {
        const applied = await applies.apply(tools, mutations, request?.plan ?? null);
        tools.log('info', `${applied.changes.length + applied.others} records have changed`);
        return applied;
      } catch (error) {
        if (!(error instanceof StalePlan)) throw failureOf(error);
        if (request) await keepDifference(request, error);
        throw new JobFailure(STALE_PLAN, error.message, { retryable: false });
      }
    },
  });
}

/** What a write refuses is refused again the next time; only being overtaken is worth another try. */
function failureOf(error: unknown): unknown {
  if (error instanceof AttemptLost)
    return new JobFailure('attempt_lost', 'Another attempt has the job, or it has ended', {
      retryable: false,
    });
  if (!(error instanceof AppError)) return error;
  if (error.code === 'permission_denied')
    return new JobFailure('permission_lost', error.message, { retryable: false });
  const overtaken = error.code === 'conflict' && error.extra.conflicts === undefined;
  return new JobFailure(overtaken ? 'overtaken' : 'change_refused', error.message, {
    retryable: overtaken,
  });
}
