import { PLATFORM } from '../../domain/access/scope.ts';
import { mayTakeMore } from '../../domain/dispatch/shares.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { tenantKey, type ConnectionUser } from '../../platform/connectionUser.ts';
import { createWaitQueue } from '../../platform/waitQueue.ts';

type Part = ConnectionUser['part'];

type Waiting = { key: string };

/** Background work waits for a connection this many times as long as a request. */
const BACKGROUND_PATIENCE = 2;

/** How many of one tenant wait for a connection. */
const MAX_WAITING = { requests: 200, background: 2_000 } as const;

const RETRY_AFTER_SECONDS = 2;

/** The platform is not one tenant among others: its staff work for all of them. */
const PLATFORM_KEY = tenantKey(PLATFORM);

/**
 * How the connections of a pool are divided: a fifth stays free for code that has a connection and
 * needs a second one, so that such code always goes on; requests and background work get half of
 * the rest each.
 */
export function divideConnections(poolSize: number): Record<Part, number> {
  const rest = poolSize - (poolSize > 2 ? Math.max(1, Math.floor(poolSize / 5)) : 0);
  return { requests: Math.ceil(rest / 2), background: Math.max(1, Math.floor(rest / 2)) };
}

/** What a tenant holds and waits for in one part of the pool. */
function createPart(
  part: Part,
  {
    capacity,
    sharePercent,
    maxWaitMs,
  }: { capacity: number; sharePercent: number; maxWaitMs: number },
) {
  const held = new Map<string, number>();
  const queue = createWaitQueue<Waiting>();
  let total = 0;

  const of = (key: string) => held.get(key) ?? 0;
  const mayTake = (key: string) =>
    total < capacity &&
    (key === PLATFORM_KEY || mayTakeMore(of(key), capacity - total, sharePercent));

  function count(key: string, change: 1 | -1): void {
    total += change;
    const sum = of(key) + change;
    if (sum > 0) held.set(key, sum);
    else held.delete(key);
  }

  const refusal = (key: string): Error => {
    if (part === 'background') return new Error('timeout expired: no connection is free');
    return total < capacity || of(key) > 1
      ? new AppError('too_many_requests', 'Too many requests of this tenant are in progress.', {
          retryAfterSeconds: RETRY_AFTER_SECONDS,
        })
      : new AppError('server_busy', 'The server is busy.', {
          retryAfterSeconds: RETRY_AFTER_SECONDS,
        });
  };

  async function waitForTurn(key: string): Promise<void> {
    if (queue.entries().filter((entry) => entry.key === key).length >= MAX_WAITING[part])
      throw refusal(key);
    await queue.wait({ key }, { maxMs: maxWaitMs, refusal: () => refusal(key) });
  }

  function grantWaiting(): void {
    for (;;) {
      const next = queue
        .entries()
        .filter(({ key }) => mayTake(key))
        .reduce<Waiting | undefined>(
          (least, entry) => (least && of(least.key) <= of(entry.key) ? least : entry),
          undefined,
        );
      if (!next) return;
      count(next.key, 1);
      queue.grant(next, undefined);
    }
  }

  return {
    /** Counts a connection; waits for the turn of `key` unless its user has one already. */
    async enter(key: string, hasOne: boolean): Promise<void> {
      if (hasOne || mayTake(key)) count(key, 1);
      else await waitForTurn(key);
    },
    waiting: queue.size,
    leave(key: string): void {
      count(key, -1);
      if (queue.size() > 0) grantWaiting();
    },
  };
}

/**
 * Shares the connections of a pool between requests and background work, and in each part between
 * tenants. A user waits for its first connection only: while it holds one, it must be able to go
 * on. The process itself does not wait.
 */
export function createConnectionShares(poolSize: number, sharePercent: number, waitMs: number) {
  const capacity = divideConnections(poolSize);
  const parts = {
    requests: createPart('requests', {
      capacity: capacity.requests,
      sharePercent,
      maxWaitMs: waitMs,
    }),
    background: createPart('background', {
      capacity: capacity.background,
      sharePercent,
      maxWaitMs: waitMs * BACKGROUND_PATIENCE,
    }),
  };
  return {
    /** How many wait for their turn. */
    waiting: (): Record<Part, number> => ({
      requests: parts.requests.waiting(),
      background: parts.background.waiting(),
    }),

    /**
     * Takes a connection with `acquire` when it is the turn of the user. Returns it with the
     * function to call when it is released. Errors: `too_many_requests`, `server_busy`; those of
     * `acquire`.
     */
    async take<T>(
      user: ConnectionUser,
      acquire: () => Promise<T>,
    ): Promise<{ connection: T; release: () => void }> {
      const part = parts[user.part];
      // The key of a request changes when its caller is known.
      const { key } = user;
      await part.enter(key, user.held > 0);
      user.held += 1;
      const release = () => {
        user.held -= 1;
        part.leave(key);
      };
      try {
        return { connection: await acquire(), release };
      } catch (error) {
        release();
        throw error;
      }
    },
  };
}
