import { tryShareUntilCommit } from '../../db/core/advisoryLocks.ts';
import { ignoreNoChange, NoChange, type Commit } from '../../db/core/commit.ts';
import { isBusy, isRefused } from '../../db/core/constraints.ts';
import type { Knex } from '../../db/core/knex.ts';
import {
  countLinesOutside,
  createMonth,
  dropEmptyMonth,
  dropMonth,
  findMissingMonths,
  findPastMonths,
  lockWhatKeepsMonths,
  mayDropMonth,
  type LogMonth,
} from '../../db/retention/months.ts';
import { readAllOverrides } from '../../db/retention/settings.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import { jobWorkflowId } from '../../domain/dispatch/workflowIds.ts';
import {
  cutoffsOf,
  earliestCutoff,
  NO_OVERRIDES,
  type RetentionDays,
} from '../../domain/retention/retention.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import type { Log } from '../../platform/log.ts';

type Deps = { db: Knex; commit: Commit; log: Log; config: { retention: RetentionDays } };

/** From this many lines outside of all months on, the log of the server says so. */
const MANY_LINES = 100_000;

/** The months of `job_logs`: creates coming ones, and drops past ones. */
export function createLogMonths({ db, commit, log, config: { retention: defaults } }: Deps) {
  /**
   * Null when the lock was not free in time, or PostgreSQL refuses the month, such as one with
   * lines of a process whose clock is ahead: the log says so, records are purged nevertheless, and
   * the next purge tries again.
   */
  const ifPossible = <T>(month: object, work: Promise<T>): Promise<T | null> =>
    work.catch((error: unknown) => {
      if (isBusy(error))
        log.warn(month, 'a month of log lines is in use; the next purge tries again');
      else if (isRefused(error))
        log.error({ err: error, ...month }, 'cannot create or drop a month of log lines');
      else throw error;
      return null;
    });

  async function earliest(on: Knex, now: Date): Promise<Date | null> {
    const all = [NO_OVERRIDES, ...(await readAllOverrides(on))];
    return earliestCutoff(all.map((each) => cutoffsOf(defaults, each, 'jobLogs', now)));
  }

  const dropWithLines = (month: LogMonth, jobId: string, now: Date): Promise<boolean> =>
    commit(systemCaller(PLATFORM, jobWorkflowId(jobId)), async (work) => {
      const trx = await work.trx();
      if (!(await tryShareUntilCommit(trx, 'restore'))) throw new NoChange();
      await lockWhatKeepsMonths(trx);
      // A period may have become longer since the month was found.
      const isDue = (await mayDropMonth(trx, month, await earliest(trx, now))) !== false;
      if (!isDue || !(await dropMonth(trx, month))) throw new NoChange();
      work.audit(
        'retention.purge',
        { type: 'retention', id: PLATFORM },
        { after: { jobId, kind: 'jobLogs', month: month.name, until: month.until } },
      );
      return true;
    }).catch(ignoreNoChange(false));

  return {
    /**
     * Creates the months that are missing, each in a transaction of its own: the next purge tries
     * those again that could not be created.
     */
    async create(now: Date): Promise<void> {
      for (const missing of await findMissingMonths(db, now))
        await ifPossible(missing, createMonth(db, now, missing));
      const lines = await countLinesOutside(db);
      if (lines >= MANY_LINES)
        log.warn({ lines }, 'many log lines are outside of all months; they are purged one by one');
    },

    /**
     * Drops the past months that are empty, and those of which no tenant and no job type keeps a
     * line. Returns their names.
     */
    async drop(jobId: string, now: Date): Promise<string[]> {
      const dropped: string[] = [];
      const cutoff = await earliest(db, now);
      for (const month of await findPastMonths(db, now)) {
        const droppable = await mayDropMonth(db, month, cutoff);
        if (droppable === false) continue;
        const drop =
          droppable === 'empty' ? dropEmptyMonth(db, month) : dropWithLines(month, jobId, now);
        if (await ifPossible(month, drop)) dropped.push(month.name);
      }
      return dropped;
    },
  };
}
