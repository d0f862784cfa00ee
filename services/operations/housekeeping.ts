import { foldQuotaUsage } from '../../db/access/quotas.ts';
import { readDatabaseTime } from '../../db/core/databaseTime.ts';
import { purgeKeys } from '../../db/core/idempotency.ts';
import type { Knex } from '../../db/core/knex.ts';
import { purgeExpired } from '../../db/core/purge.ts';
import { purgeAbandonedImportRows } from '../../db/inventory/importRows.ts';
import { KEY_RETENTION_MS } from '../../domain/shared/idempotency.ts';
import { runEach } from '../../domain/shared/runEach.ts';

export type Housekeeping = ReturnType<typeof createHousekeeping>;

type Deps = {
  db: Knex;
  /** Creates the job that purges records, when it is due. */
  startPurge(): Promise<unknown>;
  /** Creates the jobs that archive audit logs, where they are due. */
  startArchives(signal: AbortSignal): Promise<unknown>;
  /** Reports jobs that have waited long for a runner, and forgets runners that have ended. */
  watchRunners(signal: AbortSignal): Promise<void>;
  /** Reports API tokens that expire soon, and disables unused ones. */
  keepTokens(signal: AbortSignal): Promise<void>;
};

const PURGE_BATCH = 5_000;

/** The periodic work of an installation, of all areas. */
export const createHousekeeping = ({
  db,
  startPurge,
  startArchives,
  watchRunners,
  keepTokens,
}: Deps) => ({
  /**
   * Deletes technical rows that have expired: idempotency keys, sessions, sign-ins, rows of files
   * that were not received completely. Folds the ledger of quotas. Starts the purge of records
   * and archives of audit logs when they are due, watches runners and keeps tokens. Errors: those
   * of `runEach`.
   */
  async run(signal: AbortSignal): Promise<void> {
    const now = await readDatabaseTime(db);
    const before = new Date(now.getTime() - KEY_RETENTION_MS);
    const purgeAll = async (purge: typeof purgeKeys) => {
      while ((await purge(db, before, PURGE_BATCH)) === PURGE_BATCH && !signal.aborted);
    };
    const steps: (() => Promise<unknown>)[] = [
      () => purgeAll(purgeKeys),
      () => purgeAll(purgeExpired),
      () => purgeAll(purgeAbandonedImportRows),
      () => foldQuotaUsage(db),
      startPurge,
      () => startArchives(signal),
      () => watchRunners(signal),
      () => keepTokens(signal),
    ];
    await runEach(steps, signal);
  },
});
