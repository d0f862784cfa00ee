import { setTimeout as sleep } from 'node:timers/promises';
import { isDeadlock, isLockTimeout } from './constraints.ts';
import type { Knex } from './knex.ts';
import { MigrationBlocked } from './migrationLock.ts';

/**
 * How long one try may wait for a lock, in milliseconds. What waits for an exclusive lock of a table
 * holds up everything that uses the table, so most tries are short. Every fourth one waits longer than
 * `deadlock_timeout`, which is a second: only then does autovacuum leave the table.
 */
const SHORT_WAIT_MS = 400;
const LONG_WAIT_MS = 1_500;
const lockTimeoutMs = (tries: number): number => (tries % 4 === 3 ? LONG_WAIT_MS : SHORT_WAIT_MS);

/** Pauses between tries: requests that have waited are answered in them. */
const MIN_PAUSE_MS = 500;
const MAX_PAUSE_MS = 5_000;

const CHECK_MS = 100;

/** A session that holds a lock which the migration waits for. It says nothing of its statements. */
export type Blocker = { pid: number; user: string; application: string; openSeconds: number };

type LockWaits = {
  /** Called before each pause, with those that had the lock. */
  onBlocked(blockers: readonly Blocker[], pauseMs: number): void;
  /** The end of all tries, as `Date.now()` counts. */
  deadline: number;
};

async function findBlockers(db: Knex, pid: number): Promise<Blocker[]> {
  const { rows } = await db.raw<{ rows: Blocker[] }>(
    `SELECT pid, coalesce(usename, '') AS user, coalesce(application_name, '') AS application,
            coalesce(extract(epoch FROM clock_timestamp() - xact_start), 0)::integer AS "openSeconds"
     FROM pg_stat_activity WHERE pid = ANY (pg_blocking_pids(?)) ORDER BY xact_start LIMIT 3`,
    [pid],
  );
  return rows;
}

/** Remembers, until `stop` is called, who has blocked the session `pid` last. */
function watchBlockers(db: Knex, pid: number) {
  let last: Blocker[] = [];
  const stopped = new AbortController();
  const ended = (async () => {
    while (!stopped.signal.aborted) {
      await sleep(CHECK_MS);
      // The migration does not depend on it.
      const found = await findBlockers(db, pid).catch(() => []);
      if (found.length > 0) last = found;
    }
  })();
  return {
    async stop(): Promise<Blocker[]> {
      stopped.abort();
      await ended;
      return last;
    },
  };
}

export const describeBlockers = (blockers: readonly Blocker[]): string =>
  blockers
    .map(
      ({ pid, user, application, openSeconds }) =>
        `process ${pid} (user ${user}, application ${application || 'without a name'}) has had a transaction open for ${openSeconds} s`,
    )
    .join('; ');

/** One try. Returns undefined when `work` is done, else who had the lock. */
async function tryOnce(
  db: Knex,
  timeoutMs: number,
  work: (trx: Knex) => Promise<void>,
): Promise<Blocker[] | undefined> {
  let watch: ReturnType<typeof watchBlockers> | undefined;
  try {
    await db.transaction(async (trx) => {
      await trx.raw(`SET LOCAL lock_timeout = ${timeoutMs}`);
      const { rows } = await trx.raw<{ rows: { pid: number }[] }>('SELECT pg_backend_pid() AS pid');
      watch = watchBlockers(db, rows[0]?.pid ?? 0);
      await work(trx);
    });
    return undefined;
  } catch (error) {
    if (!isLockTimeout(error) && !isDeadlock(error)) throw error;
    return (await watch?.stop()) ?? [];
  } finally {
    await watch?.stop();
  }
}

/**
 * Runs `work` in a transaction that waits for locks in short tries, with pauses between them, so that a
 * transaction of others which stays open delays `work` and not the requests that use the same tables.
 * `work` runs again from its beginning. Error: `MigrationBlocked` after the deadline.
 */
export async function withShortLockWaits(
  db: Knex,
  { onBlocked, deadline }: LockWaits,
  work: (trx: Knex) => Promise<void>,
): Promise<void> {
  for (let tries = 0; ; tries++) {
    const blockers = await tryOnce(db, lockTimeoutMs(tries), work);
    if (blockers === undefined) return;
    if (Date.now() > deadline)
      throw new MigrationBlocked(
        `The tables stayed locked, so nothing was changed. ${describeBlockers(blockers)}`.trim(),
      );
    const pauseMs = Math.min(MIN_PAUSE_MS * 2 ** Math.min(tries, 10), MAX_PAUSE_MS);
    onBlocked(blockers, pauseMs);
    await sleep(pauseMs);
  }
}
