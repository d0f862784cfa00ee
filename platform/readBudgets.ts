import { PLATFORM, shareTenantOf } from '../domain/access/scope.ts';
import { AppError } from '../domain/shared/errors.ts';
import { createBudgets, secondsUntil, type Allowance } from './budgets.ts';
import { callerKey, type SlotHolder } from './slots.ts';
import { createActivity } from './tenantActivity.ts';

export type ReadBudgets = ReturnType<typeof createReadBudgets>;

/** A budget holds at most what its owner may use in this time. A debt is at most as large. */
const BURST_SECONDS = 10;

/** A read starts while anything is left. */
const ANYTHING = Number.MIN_VALUE;

/** A caller has half of the budget of its tenant, so that others of the tenant find some of it. */
const CALLER_SHARE = 1 / 2;

/** How long budgets apply after another caller has sent a request, in milliseconds. */
const ACTIVE_MS = 5_000;

const allowanceOf = (perSecondMs: number): Allowance => ({
  perSecond: perSecondMs,
  most: BURST_SECONDS * perSecondMs,
});

/**
 * Limits the time that expensive reads of a caller, and those of a tenant, use of this process: what
 * they compute, and how long they hold connections to PostgreSQL. Every owner has a budget in
 * milliseconds, which refills steadily; `perSecondMs` is that of a tenant. What a read has used is
 * deducted as it goes on. While nobody else sends requests, nobody is refused.
 */
export function createReadBudgets({
  perSecondMs,
  now = () => performance.now(),
}: {
  perSecondMs: number;
  now?: () => number;
}) {
  const budgets = createBudgets(now);
  const activity = createActivity(ACTIVE_MS, now);

  function ownersOf(holder: SlotHolder): (readonly [string, Allowance])[] {
    const tenantId = shareTenantOf(holder);
    return [
      [callerKey(holder), allowanceOf(perSecondMs * CALLER_SHARE)],
      ...(tenantId === PLATFORM ? [] : [[`tenant:${tenantId}`, allowanceOf(perSecondMs)] as const]),
    ];
  }

  return {
    /** Notes a request of any kind. */
    note: (holder: SlotHolder): void => activity.note(callerKey(holder)),

    /** Undefined if an expensive read may start, else `too_many_requests`: nothing is left. */
    refusal(holder: SlotHolder): AppError | undefined {
      if (!activity.othersAreActive(callerKey(holder))) return undefined;
      const waits = ownersOf(holder).flatMap(
        ([owner, allowance]) => secondsUntil(budgets.of(owner, allowance), ANYTHING) ?? [],
      );
      if (waits.length === 0) return undefined;
      return new AppError(
        'too_many_requests',
        'Expensive reads have used more time than a caller or a tenant may while others are active.',
        { retryAfterSeconds: Math.max(...waits) },
      );
    },

    /** Deducts what a read has used, in milliseconds. */
    charge(holder: SlotHolder, usedMs: number): void {
      for (const [owner, allowance] of ownersOf(holder)) {
        const budget = budgets.of(owner, allowance);
        budget.left = Math.max(-allowance.most, budget.left - usedMs);
      }
    },
  };
}
