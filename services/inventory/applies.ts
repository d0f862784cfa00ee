import type { Knex } from '../../db/knex.ts';
import type { Caller } from '../../domain/caller.ts';
import { AppError } from '../../domain/errors.ts';
import { invalidNow, planDifference, type FrozenPlan, type PlanDifference } from '../../domain/inventory/frozenPlan.ts';
import type { Mutation, Operation, Planned } from '../../domain/inventory/planning.ts';
import type { Change } from '../../domain/inventory/world.ts';
import type { InventoryWrites } from './writes.ts';
import { refusalOf } from './refusal.ts';

export type InventoryApplies = ReturnType<typeof createInventoryApplies>;

/** What a job has changed. */
export type Applied = { changes: { action: Operation; resource: string; id: string; version: number | null }[] };

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

const toApplied = (changes: readonly Change[]): Applied => ({
  changes: changes.map(({ resource, id, before, after }) => ({ action: after ? (before ? 'update' : 'create') : 'delete', resource, id, version: after?.version ?? null })),
});

/** Changes of the inventory that a job makes. */
export function createInventoryApplies({ db, writes }: { db: Knex; writes: InventoryWrites }) {
  const made = async (on: Knex, jobId: string): Promise<Applied | undefined> => (await on('inventory_applies').where({ job_id: jobId }).first<{ result: Applied } | undefined>('result'))?.result;

  /**
   * Makes all changes or none, once for each job, however often it is called. With `approved` they are made only when they
   * do what that says, which is looked at in the transaction that makes them. Errors: `StalePlan`; as of a write.
   */
  async function apply(caller: Caller, jobId: string, mutations: readonly Mutation[], approved: FrozenPlan | null): Promise<Applied> {
    let refused: readonly Planned[] = [];
    let result: Applied = { changes: [] };
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
          const difference = approved && planDifference(approved, outcome);
          if (difference) throw new StalePlan(difference);
          result = toApplied(outcome.changes);
          await trx('inventory_applies').insert({ job_id: jobId, result: JSON.stringify(result), applied_at: work.now });
          work.audit('inventory.apply', { type: 'job', id: jobId }, { after: { changes: result.changes.length } });
        },
      });
      return result;
    } catch (error) {
      if (error instanceof AppliedBefore) return (await made(db, jobId)) ?? result;
      if (approved && refused.length > 0 && error instanceof AppError) throw new StalePlan(invalidNow(refused));
      throw error;
    }
  }

  return { apply };
}
