import { lockIfCurrentAttempt } from '../../db/jobs/jobs.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { AppError } from '../../domain/shared/errors.ts';
import {
  invalidPlanDifference,
  placeholderIds,
  planDifference,
  type FrozenPlan,
  type PlanDifference,
} from '../../domain/inventory/frozenPlan.ts';
import type { Mutation, Operation, Planned } from '../../domain/inventory/planning.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { isReadable } from '../../domain/inventory/ownership.ts';
import type { ResourceScope, Scope } from '../../domain/access/scope.ts';
import type { Access } from '../access/access.ts';
import type { PlanOutcome } from './planner.ts';
import type { InventoryWrites } from './writes.ts';
import { conflictError } from './conflictError.ts';

export type ApprovedChanges = ReturnType<typeof createApprovedChanges>;

/** The records that a job changed, as far as the caller it acts for may read them. */
export type ApplyResult = {
  changes: {
    action: Operation;
    resource: string;
    id: string;
    version: number | null;
    /** The id of a new record in the plan, such as `new:1`. */
    planId?: string;
  }[];
  /** The number of changed records that the caller may not read. */
  hiddenChanges: number;
};

/** The attempt of a job that applies changes. */
export type ApplyAttempt = {
  caller: Caller;
  jobId: string;
  runId: string;
  attempt: number;
  signal: AbortSignal;
  /** Which changes of the job these are, if it applies several times. */
  changesKey?: string;
};

/** The changes would do something else than what was approved. */
export class StalePlan extends Error {
  readonly difference: PlanDifference;

  constructor(difference: PlanDifference) {
    super('What would happen now differs from what was approved');
    this.difference = difference;
  }
}

/** An earlier attempt of the job has applied its changes. */
class AlreadyApplied extends Error {}

/** Another attempt runs the job, or the job has finished. */
export class AttemptNotCurrent extends Error {}

function toApplyResult(outcome: PlanOutcome, scope: Scope): ApplyResult {
  const { changes } = outcome;
  const placeholders = placeholderIds(outcome);
  const visible = changes.filter(({ resource, before, after }) =>
    [before, after].some((row) => row && isReadable(scope, RESOURCES[resource], row)),
  );
  return {
    changes: visible.map(({ resource, id, before, after }) => ({
      action: after ? (before ? 'update' : 'create') : 'delete',
      resource,
      id,
      version: after?.version ?? null,
      ...(placeholders.has(id) && { planId: assertDefined(placeholders.get(id), 'plan id') }),
    })),
    hiddenChanges: changes.length - visible.length,
  };
}

/** The plan that was approved, and the scope of its request. */
export type ApprovedPlan = { plan: FrozenPlan; resourceScope: ResourceScope };

/** Applies changes of a job exactly once. */
export function createApprovedChanges({
  db,
  access,
  writes,
}: {
  db: Knex;
  access: Access;
  writes: InventoryWrites;
}) {
  const findResult = async (
    on: Knex,
    jobId: string,
    changesKey: string,
  ): Promise<ApplyResult | undefined> =>
    (
      await on('inventory_apply_results')
        .where({ job_id: jobId, changes_key: changesKey })
        .first<{ result: ApplyResult } | undefined>('result')
    )?.result;

  /**
   * Applies all mutations or none, once per job and key, even if attempts of the job overlap. With
   * `approved`, the transaction that writes compares the changes with the plan first. Returns
   * the result of the attempt that applied them. Errors: `StalePlan`, `AttemptNotCurrent`, and
   * those of a write.
   */
  async function apply(
    { caller, jobId, runId, attempt, signal, changesKey = '' }: ApplyAttempt,
    mutations: readonly Mutation[],
    approved: ApprovedPlan | null,
  ): Promise<ApplyResult> {
    let invalid: readonly Planned[] = [];
    let result: ApplyResult = { changes: [], hiddenChanges: 0 };
    const source = async (trx: Knex) => {
      if (await findResult(trx, jobId, changesKey)) throw new AlreadyApplied();
      return mutations;
    };
    try {
      await writes.apply(caller, source, 'all', {
        toError: (planned) => {
          invalid = planned;
          return conflictError(planned);
        },
        beforeCommit: async (work, trx, outcome) => {
          signal.throwIfAborted();
          if (!(await lockIfCurrentAttempt(trx, { jobId, runId, attempt })))
            throw new AttemptNotCurrent();
          // An earlier attempt may have held the locks that this one waited for.
          if (await findResult(trx, jobId, changesKey)) throw new AlreadyApplied();
          const difference =
            approved && planDifference(approved.plan, outcome, approved.resourceScope);
          if (difference) throw new StalePlan(difference);
          result = toApplyResult(outcome, access.scope(caller, 'inventory:read'));
          await trx('inventory_apply_results').insert({
            job_id: jobId,
            changes_key: changesKey,
            result: JSON.stringify(result),
            applied_at: work.now,
          });
          work.audit(
            'inventory.apply',
            { type: 'job', id: jobId },
            { after: { changes: outcome.changes.length } },
          );
        },
      });
      return result;
    } catch (error) {
      const earlierResult =
        error instanceof AlreadyApplied || invalid.length > 0
          ? await findResult(db, jobId, changesKey)
          : undefined;
      if (earlierResult) return earlierResult;
      if (approved && invalid.length > 0 && error instanceof AppError)
        throw new StalePlan(invalidPlanDifference(invalid));
      throw error;
    }
  }

  return { apply };
}
