import { LRUCache } from 'lru-cache';
import { AppError, type ErrorCode } from '../../domain/shared/errors.ts';
import { createBoundedQueue } from '../../platform/boundedQueue.ts';
import { createBudgets, secondsUntil, type Budget } from '../../platform/budgets.ts';
import { networkOf } from '../../platform/network.ts';
import type { StrangerLimits } from '../http/route.ts';

export type Strangers = ReturnType<typeof createStrangers>;

/**
 * Requests at public routes that a process handles concurrently, of each group: for all
 * addresses, and for each. A provider that does not answer holds slots of its group only.
 */
const MAX_CONCURRENT = 200;
const MAX_CONCURRENT_PER_ADDRESS = 20;

/**
 * Tokens that were valid recently, as hashes: their owners are no strangers. Others are searched for a
 * few at a time, so that invented tokens cannot occupy the connections to PostgreSQL.
 */
const MAX_KNOWN_TOKENS = 20_000;
const MAX_CONCURRENT_LOOKUPS = 4;
const MAX_LOOKUPS_QUEUED = 200;

/** What a request costs that states no valid identity. */
const REJECTED_COST = 1;

/** Errors of a client without a valid session or token, and of one that has stolen a token. */
const INVALID: ReadonlySet<ErrorCode> = new Set([
  'session_invalid',
  'token_invalid',
  'address_not_allowed',
]);

const tooMany = (detail: string, retryAfterSeconds: number) =>
  new AppError('too_many_requests', detail, { retryAfterSeconds });

/**
 * Counts what clients without an accepted identity cost, by address (IPv6: by /64), in the memory
 * of this process: before a body is read, before PostgreSQL is asked, and before anything is
 * written. An address has `budgetPerMinute`, which refills steadily.
 */
export function createStrangers({
  budgetPerMinute,
  now,
}: {
  budgetPerMinute: number;
  now?: () => number;
}) {
  const budgets = createBudgets(now);
  const allowance = { perSecond: budgetPerMinute / 60, most: budgetPerMinute };
  const running = new Map<string, number>();
  const addRunning = (key: string, change: 1 | -1): void => {
    const count = (running.get(key) ?? 0) + change;
    if (count > 0) running.set(key, count);
    else running.delete(key);
  };
  const knownTokens = new LRUCache<string, true>({ max: MAX_KNOWN_TOKENS });
  const lookups = createBoundedQueue({
    maxRunning: MAX_CONCURRENT_LOOKUPS,
    maxQueued: MAX_LOOKUPS_QUEUED,
    busy: 'Too many unknown tokens are being checked.',
  });

  const budgetOf = (address: string | null): Budget => budgets.of(networkOf(address), allowance);

  /** Error: `too_many_requests` if less than `cost` is left. */
  function requireBudget(address: string | null, cost: number): Budget {
    const budget = budgetOf(address);
    const retryAfterSeconds = secondsUntil(budget, Math.min(cost, budgetPerMinute));
    if (retryAfterSeconds !== undefined)
      throw tooMany(
        'Too many requests without an accepted identity from this address.',
        retryAfterSeconds,
      );
    return budget;
  }

  function spend(address: string | null, cost: number): void {
    requireBudget(address, cost).left -= cost;
  }

  return {
    /**
     * Counts a request at a public route and handles it. Errors: `too_many_requests`; those of
     * `handle`.
     */
    async admit<T>(
      address: string | null,
      { cost, slots }: Pick<StrangerLimits, 'cost' | 'slots'>,
      handle: () => Promise<T>,
    ): Promise<T> {
      const all: string = slots ?? 'other';
      const own = `${all} ${networkOf(address)}`;
      spend(address, cost);
      if (
        (running.get(all) ?? 0) >= MAX_CONCURRENT ||
        (running.get(own) ?? 0) >= MAX_CONCURRENT_PER_ADDRESS
      )
        throw tooMany('Too many concurrent requests without an accepted identity.', 1);
      addRunning(all, 1);
      addRunning(own, 1);
      try {
        return await handle();
      } finally {
        addRunning(all, -1);
        addRunning(own, -1);
      }
    },

    /** Counts a request that is rejected without a query. */
    reject: (address: string | null): void => spend(address, REJECTED_COST),

    /**
     * Finds the owner of a token. Strangers at the same address do not hold up a user who has used
     * it successfully, nor one who `isRepeated`: an address that has used up its budget must not keep
     * a stream whose token was revoked. Errors: `too_many_requests`; those of `find`, of which those
     * about the token are counted.
     */
    async identify<T>(
      address: string | null,
      tokenHash: Buffer,
      find: () => Promise<T>,
      { isRepeated = false } = {},
    ): Promise<T> {
      const key = tokenHash.toString('base64');
      const isKnown = isRepeated || knownTokens.has(key);
      if (!isKnown) requireBudget(address, REJECTED_COST);
      try {
        const found = await (isKnown ? find() : lookups.run(find));
        knownTokens.set(key, true);
        return found;
      } catch (error) {
        if (error instanceof AppError && INVALID.has(error.code)) {
          knownTokens.delete(key);
          budgetOf(address).left -= REJECTED_COST;
        }
        throw error;
      }
    },
  };
}
