import { setTimeout as sleep } from 'node:timers/promises';
import { LOCKS } from './advisoryLocks.ts';
import type { Knex } from './knex.ts';
import { noticeLostClient } from './lostClients.ts';
import { withOwnConnection } from './ownConnection.ts';

/** A migration could not get its locks, or its turn, in time. Nothing of it was changed. */
export class MigrationBlocked extends Error {}

const RETRY_MS = 250;

type Turn = {
  /** The end of the wait, as `Date.now()` counts. */
  deadline: number;
  /** Called once, if another process has the lock. */
  onWait(): void;
};

/**
 * Runs `work` in one process at a time. The lock ends with its connection, so a killed process leaves
 * none behind; the server notices a lost machine within a minute. Neither the lock nor the wait for it is a transaction, or a statement that takes long:
 * `CREATE INDEX CONCURRENTLY` waits for all of these. Error: `MigrationBlocked`.
 */
export const withMigrationLock = <T>(
  db: Knex,
  { deadline, onWait }: Turn,
  work: () => Promise<T>,
): Promise<T> =>
  withOwnConnection(db, async (run) => {
    await run(noticeLostClient('SESSION'));
    const tryLock = async () => {
      const [row] = await run<{ acquired: boolean }>('SELECT pg_try_advisory_lock(?) AS acquired', [
        LOCKS.migration,
      ]);
      return row?.acquired === true;
    };
    for (let tries = 0; !(await tryLock()); tries++) {
      if (Date.now() > deadline)
        throw new MigrationBlocked('Another process has been migrating the schema for too long.');
      if (tries === 0) onWait();
      await sleep(RETRY_MS);
    }
    try {
      return await work();
    } finally {
      // A connection that was lost has no lock any more.
      await run('SELECT pg_advisory_unlock(?)', [LOCKS.migration]).catch(() => undefined);
    }
  });
