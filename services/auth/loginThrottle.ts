import { createHash } from 'node:crypto';
import { RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible';
import { deleteLoginCounts } from '../../db/auth/rateLimits.ts';
import type { Knex } from '../../db/core/knex.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { networkOf } from '../../platform/network.ts';

export type LoginThrottle = ReturnType<typeof createLoginThrottle>;

/** A counted attempt. Without one of these calls it counts as failed. */
type Attempt = {
  succeeded(): Promise<void>;
  inconclusive(): Promise<void>;
  /** Checks the password. If `verify` throws, as when the database is away, the attempt does not count. */
  check<T>(verify: () => Promise<T>): Promise<T>;
};

/** Attempts per window of 15 minutes. PostgreSQL counts them for all processes together. */
const WINDOW_SECONDS = 900;
const MAX_ATTEMPTS = { pair: 10, account: 100, address: 50, step: 600 } as const;

/** Limits attempts at passwords, and steps of single sign-on. */
export function createLoginThrottle({ db }: { db: Knex }) {
  const limiter = (keyPrefix: keyof typeof MAX_ATTEMPTS) =>
    new RateLimiterPostgres({
      storeClient: db,
      storeType: 'knex',
      tableName: 'rate_limits',
      tableCreated: true,
      keyPrefix,
      points: MAX_ATTEMPTS[keyPrefix],
      duration: WINDOW_SECONDS,
      clearExpiredByTimeout: false,
    });
  // The limit per account and address is lower than the one per account, so that a single attacker
  // is stopped before the account is locked for its owner at another address.
  const accountAddressPairs = limiter('pair');
  const accounts = limiter('account');
  const addresses = limiter('address');
  const steps = limiter('step');

  /** Undoes the count of one attempt. */
  const refund = (from: RateLimiterPostgres, key: string): Promise<unknown> => from.reward(key, 1);

  async function consume(
    from: RateLimiterPostgres,
    key: string,
    onThrottled?: () => Promise<void>,
  ): Promise<void> {
    await from.consume(key).catch(async (rejection: unknown) => {
      if (!(rejection instanceof RateLimiterRes)) throw rejection;
      await onThrottled?.();
      throw new AppError('too_many_requests', 'Too many attempts; try again later.', {
        retryAfterSeconds: Math.max(1, Math.ceil(rejection.msBeforeNext / 1_000)),
      });
    });
  }

  return {
    /**
     * Counts an attempt before it is made, so that concurrent attempts cannot exceed the limit.
     * Success resets the count of this account at this address. `account` is the name as entered,
     * whether it exists or not. `onThrottled` runs if the limit is exceeded, not for other errors, such as a busy
     * database. Error: `too_many_requests`.
     */
    async attempt({
      account,
      address,
      onThrottled,
    }: {
      account: string;
      address: string | null;
      onThrottled?: () => Promise<void>;
    }): Promise<Attempt> {
      const network = networkOf(address);
      const accountKey = normalizedKey(account);
      const counters: [RateLimiterPostgres, string][] = [
        [addresses, network],
        [accountAddressPairs, `${accountKey}.${normalizedKey(network)}`],
        [accounts, accountKey],
      ];
      for (const [limit, key] of counters) await consume(limit, key, onThrottled);
      const inconclusive = async () => {
        await Promise.all(counters.map(([limit, key]) => refund(limit, key)));
      };
      return {
        inconclusive,
        async succeeded() {
          await Promise.all([
            accountAddressPairs.delete(`${accountKey}.${normalizedKey(network)}`),
            refund(accounts, accountKey),
            refund(addresses, network),
          ]);
        },
        async check(verify) {
          try {
            return await verify();
          } catch (error) {
            await inconclusive();
            throw error;
          }
        },
      };
    },

    /** Deletes the counts of an account that has a new password. */
    async reset(account: string): Promise<void> {
      await deleteLoginCounts(db, normalizedKey(account));
    },

    /** Counts a step of single sign-on from an address. Error: `too_many_requests`. */
    countStep: (address: string | null): Promise<void> => consume(steps, networkOf(address)),
  };
}

/** Throttle account of a local user name. */
export const localAccountKey = (username: string): string => `local:${username}`;

/**
 * One key for all spellings that a directory may treat as the same name: they differ in case,
 * width, accents or spaces only. Hashed, so that its length is bounded.
 */
const normalizedKey = (name: string): string =>
  createHash('sha256')
    .update(
      name
        .normalize('NFKD')
        .replaceAll(/[\p{M}\p{Cf}]/gu, '')
        // The capital of ß is SS, and that of ẞ is itself.
        .toLowerCase()
        .toUpperCase()
        .replaceAll(/\s+/g, ' ')
        .trim(),
    )
    .digest('base64url');
