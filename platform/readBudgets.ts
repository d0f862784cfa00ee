import { LRUCache } from 'lru-cache';
import { PLATFORM, shareTenantOf } from '../domain/access/scope.ts';
import { AppError } from '../domain/shared/errors.ts';
import { callerKey, type SlotHolder } from './slots.ts';
import { createActivity } from './tenantActivity.ts';

export type ReadBudgets = ReturnType<typeof createReadBudgets>;

/** A budget holds at most what its owner may use in this time. A debt is at most as large. */
const BURST_SECONDS = 10;

/** A caller has half of the budget of its tenant, so that others of the tenant find some of it. */
const CALLER_SHARE = 1 / 2;

/** Owners whose budgets are remembered. Those seen longest ago are forgotten, and have a full one. */
const MAX_OWNERS = 20_000;

/** Budgets apply for so long after another caller has sent a request, in milliseconds. */
const ACTIVE_MS = 5_000;

type Budget = { left: number; at: number };

/**
 * Limits the time that expensive reads of a caller, and those of a tenant, use of this process: what
 * they compute, and how long they hold connections to PostgreSQL. Every owner has a budget in
 * milliseconds, which refills steadily; `perSecondMs` is that of a tenant. A read starts while
 * something is left, and what it has used is deducted as it goes on. While nobody else sends
 * requests, nobody is refused.
 */
export function createReadBudgets({
  perSecondMs,
  now = () => performance.now(),
}: {
  perSecondMs: number;
  now?: () => number;
}) {
  const budgets = new LRUCache<string, Budget>({ max: MAX_OWNERS });
  const activity = createActivity(ACTIVE_MS, now);

  function budgetOf(owner: string, rate: number): Budget {
    const at = now();
    const known = budgets.get(owner) ?? { left: BURST_SECONDS * rate, at };
    const refilled = known.left + ((at - known.at) / 1_000) * rate;
    const budget = { left: Math.min(BURST_SECONDS * rate, refilled), at };
    budgets.set(owner, budget);
    return budget;
  }

  function ownersOf(holder: SlotHolder): (readonly [string, number])[] {
    const tenantId = shareTenantOf(holder);
    return [
      [callerKey(holder), perSecondMs * CALLER_SHARE],
      ...(tenantId === PLATFORM ? [] : [[`tenant:${tenantId}`, perSecondMs] as const]),
    ];
  }

  return {
    /** Notes a request of any kind. */
    note: (holder: SlotHolder): void => activity.note(callerKey(holder)),

    /** Undefined if an expensive read may start, else `too_many_requests`: nothing is left. */
    refusal(holder: SlotHolder): AppError | undefined {
      if (!activity.othersAreActive(callerKey(holder))) return undefined;
      const waits = ownersOf(holder).map(([owner, rate]) => -budgetOf(owner, rate).left / rate);
      const seconds = Math.max(...waits);
      if (seconds < 0) return undefined;
      return new AppError(
        'too_many_requests',
        'Expensive reads have used more time than a caller or a tenant may while others are active.',
        { retryAfterSeconds: Math.max(1, Math.ceil(seconds)) },
      );
    },

    /** Deducts what a read has used, in milliseconds. */
    charge(holder: SlotHolder, usedMs: number): void {
      for (const [owner, rate] of ownersOf(holder)) {
        const budget = budgetOf(owner, rate);
        budget.left = Math.max(-BURST_SECONDS * rate, budget.left - usedMs);
      }
    },
  };
}
