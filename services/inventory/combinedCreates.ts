import { NoChange, type Commit, type Work } from '../../db/core/commit.ts';
import { ConcurrencyError, isRefused } from '../../db/core/constraints.ts';
import type { Knex } from '../../db/core/knex.ts';
import { isValid, type Mutation, type Planned } from '../../domain/inventory/planning.ts';
import type { Row } from '../../domain/inventory/resource.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { Access } from '../access/access.ts';
import { recordChanges } from './inventoryAudit.ts';
import type { Planner, PlanOutcome } from './planner.ts';
import { isPlanningError } from './planningError.ts';
import { assertUnchanged } from './reliance.ts';

/** Bounds of the creates that are made together (`platform/combiner.ts`). */
export const COMBINED_CREATES = { maxTogether: 50, maxWaiting: 200, maxWaitMs: 5_000 } as const;

type Deps = { commit: Commit; access: Access; planner: Planner };

type Options = {
  /** False: the valid creates are made. True: all of them or none. */
  isAllOrNone?: boolean;
  /** Further writes in the transaction. */
  beforeCommit?: (work: Work, trx: Knex) => Promise<void>;
};

/** Creates of which none can be made together with others, or not all where that is required. */
class NotCombinable extends Error {}

/** True for a create that changes other records too: it would be unclear whose changes these are. */
const hasEffects = (plan: Planned): boolean =>
  isValid(plan) && plan.effects.some(({ reason }) => reason !== 'requested');

/** The created row of each plan, null where it is not valid. Error: `NotCombinable`. */
function createdRows({ planned, changes }: PlanOutcome, isAllOrNone: boolean): (Row | null)[] {
  const byId = new Map(changes.map((change) => [change.id, change]));
  const rows = planned.map((plan) => {
    const change = isValid(plan) && plan.subject ? byId.get(plan.subject.id) : undefined;
    return change?.before === null ? change.after : null;
  });
  const count = rows.filter((row) => row !== null).length;
  if (count === 0 || count < changes.length || (isAllOrNone && count < rows.length))
    throw new NotCombinable();
  return rows;
}

/**
 * True when an error says that nothing was committed, so that each create may be made alone. It may
 * be due to one of them: others must not fail because of it.
 */
const isRefusal = (error: unknown): boolean =>
  error instanceof NotCombinable ||
  error instanceof AppError ||
  error instanceof NoChange ||
  error instanceof ConcurrencyError ||
  isRefused(error);

/** A create that is part of a group. */
type Member = { caller: Caller; mutation: Mutation; at: number };

/**
 * Returns a function that makes one create for each of several callers with the same rights and
 * tenant, in one transaction, each on top of those before it, as if they had come one after another.
 * Each has its own audit entry, event and idempotency key. The result is the row of each; null for
 * what must be made alone, which also finds the errors of those that are not valid.
 */
export function createCombinedCreates({ commit, access, planner }: Deps) {
  const plan = (trx: Knex.Transaction, members: readonly Member[], { caller, now }: PlanFor) =>
    planner.planToWrite(
      trx,
      caller,
      members.map(({ mutation }) => mutation),
      { perMutation: true, warns: false, now },
    );

  /** Plans the members that have no effects; the others have been planned in vain. */
  async function planCombinable(
    trx: Knex.Transaction,
    members: readonly Member[],
    planFor: PlanFor,
  ) {
    const outcome = await plan(trx, members, planFor);
    if (!outcome.planned.some(hasEffects)) return { members, outcome };
    const others = members.filter((_, i) => {
      const planned = outcome.planned[i];
      return planned !== undefined && isValid(planned) && !hasEffects(planned);
    });
    if (others.length === 0) throw new NotCombinable();
    return { members: others, outcome: await plan(trx, others, planFor) };
  }

  return async (
    callers: readonly Caller[],
    source: (trx: Knex) => Promise<readonly Mutation[]>,
    { isAllOrNone = false, beforeCommit }: Options = {},
  ): Promise<(Row | null)[]> => {
    const results: (Row | null)[] = callers.map(() => null);
    const { idempotency, ...shared } = assertDefined(callers[0], 'caller of a create');
    let isPlanned = false;
    try {
      await commit(shared, async (work) => {
        const trx = await work.trx();
        const requested = membersOf(callers, await source(trx));
        const planFor = { caller: shared, now: work.now };
        const { members, outcome } = await planCombinable(trx, requested, planFor);
        const { write, relied, ...plans } = outcome;
        isPlanned = true;
        if (isAllOrNone && members.length < callers.length) throw new NotCombinable();
        const rows = createdRows(plans, isAllOrNone);
        await write(work);
        await assertUnchanged(trx, [{ relied, changes: plans.changes }]);
        for (const [i, { caller, at }] of members.entries()) {
          const [row, planned] = [rows[i] ?? null, plans.planned[i]];
          results[at] = row;
          const change = row && plans.changes.find(({ after }) => after === row);
          if (!change || !planned) continue;
          const own = work.as(caller);
          const scope = access.scope(caller, 'inventory:write');
          recordChanges(own, { planned: [planned], changes: [change] }, scope);
          own.result(row.id);
        }
        await beforeCommit?.(work, trx);
      });
      return results;
    } catch (error) {
      if (isRefusal(error) || (!isPlanned && isPlanningError(error)))
        return callers.map(() => null);
      throw error;
    }
  };
}

type PlanFor = { caller: Caller; now: Date };

const membersOf = (callers: readonly Caller[], mutations: readonly Mutation[]): Member[] =>
  callers.flatMap((caller, at) => {
    const mutation = mutations[at];
    return mutation ? [{ caller, mutation, at }] : [];
  });
