import { hasAttempt } from '../../db/jobs/jobs.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError } from '../../domain/shared/errors.ts';
import {
  invalidNow,
  numbersOf,
  planDifference,
  type FrozenPlan,
  type PlanDifference,
} from '../../domain/inventory/frozenPlan.ts';
import type { Mutation, Operation, Planned } from '../../domain/inventory/planning.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { isSeen } from '../../domain/inventory/standing.ts';
import type { Scope } from '../../domain/access/scope.ts';
import type { Access } from '../access.ts';
import type { Outcome } from './planner.ts';
import type { InventoryWrites } from './writes.ts';
import { refusalOf } from './conflictError.ts';

export type InventoryApplies = ReturnType<typeof createInventoryApplies>;

/**
 * What a job has changed, where whoever it acts for may read it, and how many records besides. A new record is named `as`
 * in the plan.
 */
export type Applied = {
  changes: {
    action: Operation;
    resource: string;
    id: string;
    version: number | null;
    as?: string;
  }[];
  others: number;
};

/** The attempt of a job that makes changes. */
export type Attempt = {
  caller: Caller;
  jobId: string;
  runId: string;
  attempt: number;
  signal: AbortSignal;
};

/** The changes would not do what was approved. */
export class StalePlan extends Error {
  readonly difference: PlanDifference;

  constructor(difference: PlanDifference) {
    super('What would happen now differs from what was approved');
    this.difference = difference;
  }
}

/** This job has made its changes already. */
class AppliedBefore extends Error {}

/** Another attempt has the job, or it has ended. */
export class AttemptLost extends Error {}

function toApplied(outcome: Outcome, scope: Scope): Applied {
  const { changes } = outcome;
  const numbers = numbersOf(outcome);
  const seen = changes.filter(({ resource, before, after }) =>
    [before, after].some((row) => row && isSeen(scope, RESOURCES[resource], row)),
  );
  return {
    changes: seen.map(({ resource, id, before, after }) => ({
      action: after ? (before ? 'update' : 'create') : 'delete',
      resource,
      id,
      version: after?.version ?? null,
      ...(numbers.has(id) && { as: numbers.get(id) ?? '' }),
    })),
    others: changes.length - seen.length,
  };
}

/** Changes of the inventory that a job makes. */
export function createInventoryApplies({
  db,
  access,
  writes,
}: {
  db: Knex;
  access: Access;
  writes: InventoryWrites;
}) {
  const made = async (on: Knex, jobId: string): Promise<Applied | undefined> =>
    (
      await on('inventory_applies')
        .where({ job_id: jobId })
        .first<{ result: Applied } | undefined>('result')
    )?.result;

  /**
   * Makes all changes or none, once for each job, however many attempts there are, one after the other or at once. With
   * `approved` they are made only when they do what that says, which is looked at in the transaction that makes them.
   * Errors: `StalePlan`, `AttemptLost`; as of a write.
   */
  async function apply(
    { caller, jobId, runId, attempt, signal }: Attempt,
    mutations: readonly Mutation[],
    approved: FrozenPlan | null,
  ): Promise<Applied> {
    let refused: readonly Planned[] = [];
    let result: Applied = { changes: [], others: 0 };
    const source = async (trx: Knex) => {
      if (await made(trx, jobId)) throw new AppliedBefore();
      return mutations;
    };
    try {
      await writes.apply(caller, source, 'all', {
        refuse: (planned) => {
          refused = planned;
          return refusalOf(planned, true);
        },
        along: async (work, trx, outcome) => {
          signal.throwIfAborted();
          if (!(await hasAttempt(trx, { jobId, runId, attempt }))) throw new AttemptLost();
          // An attempt before this one may have held the locks that this one has waited for.
          if (await made(trx, jobId)) throw new AppliedBefore();
          const difference = approved && planDifference(approved, outcome);
          if (difference) throw new StalePlan(difference);
          result = toApplied(outcome, access.scope(caller, 'inventory:read'));
          await trx('inventory_applies').insert({
            job_id: jobId,
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
      const known =
        error instanceof AppliedBefore || refused.length > 0 ? await made(db, jobId) : undefined;
      if (known) return known;
      if (approved && refused.length > 0 && error instanceof AppError)
        throw new StalePlan(invalidNow(refused));
      throw error;
    }
  }

  return { apply };
}
