import { LRUCache } from 'lru-cache';

/** What an owner may use, in units that its user chooses: steadily, and together after a pause. */
export type Allowance = { perSecond: number; most: number };

/** `left` may be changed; it is negative for a debt. */
export type Budget = { left: number; readonly allowance: Allowance };

/** Owners that are remembered. Those seen longest ago are forgotten, and have all that they may use. */
const MAX_OWNERS = 20_000;

/** Budgets of a process, which refill steadily. `now` is in milliseconds, of a clock that is never set back. */
export function createBudgets(now: () => number = () => performance.now()) {
  const budgets = new LRUCache<string, Budget & { at: number }>({ max: MAX_OWNERS });

  /** The budget of an owner now. After a change of its allowance it keeps what was left. */
  function of(owner: string, allowance: Allowance): Budget {
    const { perSecond, most } = allowance;
    const at = now();
    const known = budgets.get(owner) ?? { left: most, at };
    const gained = ((at - known.at) / 1_000) * perSecond;
    const budget = { left: Math.min(most, known.left + gained), allowance, at };
    budgets.set(owner, budget);
    return budget;
  }

  return {
    of,
    /** The budget of an owner that is remembered. */
    find(owner: string): Budget | undefined {
      const known = budgets.get(owner);
      return known && of(owner, known.allowance);
    },
  };
}

/** After how many seconds a budget has `cost`, at least 1; undefined if it has now. */
export function secondsUntil(
  { left, allowance: { perSecond } }: Budget,
  cost: number,
): number | undefined {
  const missing = cost - left;
  return missing > 0 ? Math.max(1, Math.ceil(missing / perSecond)) : undefined;
}
