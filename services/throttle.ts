import { createHash } from 'node:crypto';
import ipaddr from 'ipaddr.js';
import { RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible';
import type { Knex } from '../db/knex.ts';
import { AppError } from '../domain/errors.ts';

export type Throttle = ReturnType<typeof createThrottle>;

/** Attempts in a window of 15 minutes, counted in PostgreSQL for all processes together. */
const WINDOW_SECONDS = 900;
const ATTEMPTS = { account: 10, address: 50, start: 300 } as const;

/** Bounds how often passwords can be tried, and how often a login can be begun. */
export function createThrottle({ db }: { db: Knex }) {
  const limiter = (keyPrefix: keyof typeof ATTEMPTS) =>
    new RateLimiterPostgres({
      storeClient: db, storeType: 'knex', tableName: 'rate_limits', tableCreated: true, keyPrefix,
      points: ATTEMPTS[keyPrefix], duration: WINDOW_SECONDS, clearExpiredByTimeout: false,
    });
  const accounts = limiter('account');
  const addresses = limiter('address');
  const starts = limiter('start');

  async function take(from: RateLimiterPostgres, key: string): Promise<void> {
    await from.consume(key).catch((refused: unknown) => {
      if (!(refused instanceof RateLimiterRes)) throw refused;
      throw new AppError('too_many_requests', 'Too many attempts; try again later.', {
        retryAfterSeconds: Math.max(1, Math.ceil(refused.msBeforeNext / 1_000)),
      });
    });
  }

  return {
    /**
     * Counts an attempt before it is made, so that many at once do not slip through; one that succeeds gives its
     * account a new start. `account` is whatever was typed, known or not. Error: `too_many_requests`.
     */
    async attempt({ account, address }: { account: string; address: string | null }): Promise<{ succeeded(): Promise<void> }> {
      const accountKey = createHash('sha256').update(account.toLowerCase()).digest('base64url');
      await take(addresses, networkOf(address));
      await take(accounts, accountKey);
      return {
        async succeeded() {
          await Promise.all([accounts.delete(accountKey), addresses.reward(networkOf(address), 1)]);
        },
      };
    },

    /** Counts a login that is begun at an identity provider. Error: `too_many_requests`. */
    start: (address: string | null): Promise<void> => take(starts, networkOf(address)),
  };
}

/** Who has one IPv6 address has a /64 of them. */
function networkOf(address: string | null): string {
  if (address === null) return 'unknown';
  const parsed = ipaddr.process(address.replace(/%.*$/, ''));
  return parsed.kind() === 'ipv4' ? parsed.toString() : `${parsed.toNormalizedString().split(':').slice(0, 4).join(':')}::/64`;
}
