import { AppError } from '../../../domain/shared/errors.ts';
import { createBudgets, secondsUntil, type Budget } from '../../../platform/budgets.ts';
import { counted } from '../../../domain/shared/counted.ts';

const REQUEST = 1;

/**
 * Counts the requests of tokens in the memory of this process. Each token has a budget, which refills
 * steadily, as large as its limit a minute.
 */
export function createTokenRate({ now }: { now?: () => number } = {}) {
  const budgets = createBudgets(now);

  function requireLeft(budget: Budget): void {
    const retryAfterSeconds = secondsUntil(budget, REQUEST);
    if (retryAfterSeconds === undefined) return;
    const detail = `The token may make ${counted(budget.allowance.most, 'request')} a minute.`;
    throw new AppError('too_many_requests', detail, { retryAfterSeconds });
  }

  return {
    /** Error: `too_many_requests` for a token that is known to have used up its budget. */
    check(tokenId: string): void {
      const known = budgets.find(tokenId);
      if (known) requireLeft(known);
    },

    /** Counts a request. Error: `too_many_requests`. */
    count(tokenId: string, perMinute: number): void {
      const budget = budgets.of(tokenId, { perSecond: perMinute / 60, most: perMinute });
      requireLeft(budget);
      budget.left -= REQUEST;
    },
  };
}
