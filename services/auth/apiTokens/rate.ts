import { LRUCache } from 'lru-cache';
import { AppError } from '../../../domain/shared/errors.ts';

/** Tokens whose budgets are remembered. Those used longest ago are forgotten. */
const MAX_TOKENS = 20_000;

type Budget = { perMinute: number; left: number; at: number };

/**
 * Counts the requests of tokens in the memory of this process. Each token has a budget, which refills
 * steadily, as large as its limit a minute.
 */
export function createTokenRate({ now = Date.now }: { now?: () => number } = {}) {
  const budgets = new LRUCache<string, Budget>({ max: MAX_TOKENS });

  function refill({ perMinute, left, at }: Budget): Budget {
    const gained = (Math.max(0, now() - at) / 60_000) * perMinute;
    return { perMinute, left: Math.min(perMinute, left + gained), at: now() };
  }

  function requireLeft({ perMinute, left }: Budget): void {
    if (left >= 1) return;
    throw new AppError('too_many_requests', `The token may make ${perMinute} requests a minute.`, {
      retryAfterSeconds: Math.max(1, Math.ceil(((1 - left) / perMinute) * 60)),
    });
  }

  return {
    /** Error: `too_many_requests` for a token that is known to have used up its budget. */
    check(tokenId: string): void {
      const known = budgets.get(tokenId);
      if (known) requireLeft(refill(known));
    },

    /** Counts a request. Error: `too_many_requests`. */
    count(tokenId: string, perMinute: number): void {
      const known = budgets.get(tokenId);
      const before = known?.perMinute === perMinute ? known : undefined;
      const left = Math.min(perMinute, known?.left ?? perMinute);
      const budget = refill(before ?? { perMinute, left, at: known?.at ?? now() });
      requireLeft(budget);
      budgets.set(tokenId, { ...budget, left: budget.left - 1 });
    },
  };
}
