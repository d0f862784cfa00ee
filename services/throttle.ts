import { createHash } from 'node:crypto';
import { RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible';
import type { Knex } from '../db/core/knex.ts';
import { AppError } from '../domain/shared/errors.ts';
import { networkOf } from '../platform/network.ts';

export type Throttle = ReturnType<typeof createThrottle>;

/** An attempt that was counted: it succeeded, or could not be decided; otherwise it stays counted. */
type Attempt = { succeeded(): Promise<void>; undecided(): Promise<void> };

/** Attempts in a window of 15 minutes, counted in PostgreSQL for all processes together. */
const WINDOW_SECONDS = 900;
const ATTEMPTS = { pair: 10, account: 100, address: 50, step: 600 } as const;

/** Bounds how often passwords can be tried, and how often a browser can take a step of a sign-in. */
export function createThrottle({ db }: { db: Knex }) {
  const limiter = (keyPrefix: keyof typeof ATTEMPTS) =>
    new RateLimiterPostgres({
      storeClient: db,
      storeType: 'knex',
      tableName: 'rate_limits',
      tableCreated: true,
      keyPrefix,
      points: ATTEMPTS[keyPrefix],
      duration: WINDOW_SECONDS,
      clearExpiredByTimeout: false,
    });
  // One side that guesses is stopped before it can lock the owner out, who sits elsewhere.
  const pairs = limiter('pair');
  const accounts = limiter('account');
  const addresses = limiter('address');
  const steps = limiter('step');

  /** Takes back what was counted for an attempt. */
  const giveBack = (from: RateLimiterPostgres, key: string): Promise<unknown> =>
    from.reward(key, 1);

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
     * account a new start there. `account` is whatever was typed, known or not. Error: `too_many_requests`.
     */
    async attempt({
      account,
      address,
    }: {
      account: string;
      address: string | null;
    }): Promise<Attempt> {
      const network = networkOf(address);
      const accountKey = keyOf(account);
      const counts: [RateLimiterPostgres, string][] = [
        [addresses, network],
        [pairs, `${accountKey}.${keyOf(network)}`],
        [accounts, accountKey],
      ];
      for (const [limit, key] of counts) await take(limit, key);
      return {
        async succeeded() {
          await Promise.all([
            pairs.delete(`${accountKey}.${keyOf(network)}`),
            giveBack(accounts, accountKey),
            giveBack(addresses, network),
          ]);
        },
        async undecided() {
          await Promise.all(counts.map(([limit, key]) => giveBack(limit, key)));
        },
      };
    },

    /** Forgets what was counted for an account: it has a new password. */
    async forgive(account: string): Promise<void> {
      const key = keyOf(account);
      await db('rate_limits')
        .whereRaw('key = ? OR starts_with(key, ?)', [`account:${key}`, `pair:${key}.`])
        .delete();
    },

    /** Counts a step of a sign-in with an identity provider. Error: `too_many_requests`. */
    step: (address: string | null): Promise<void> => take(steps, networkOf(address)),
  };
}

/** How a local account is called here. */
export const localAccount = (username: string): string => `local:${username}`;

/** One key for all spellings that a database or a directory may take for one name: case, width, accents and blanks. */
const keyOf = (name: string): string =>
  createHash('sha256')
    .update(
      name
        .normalize('NFKD')
        .replaceAll(/[\p{M}\p{Cf}]/gu, '')
        .toUpperCase()
        .replaceAll(/\s+/g, ' ')
        .trim(),
    )
    .digest('base64url');
