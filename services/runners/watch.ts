import { ignoreNoChange, type Commit } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { findWaiting, purgeRunners, reportWaitingChange } from '../../db/runners/runners.ts';
import { runEach } from '../../domain/shared/runEach.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import { jobRecord } from '../jobs/jobAudit.ts';

/** A job that no runner takes is an event after this time, in seconds. */
const REPORT_AFTER_SECONDS = 300;

const BATCH = 200;

/**
 * Creates the function that reports jobs which have waited long and that no living runner may start, each once
 * (`job.waiting`), and forgets runners that ended without a word.
 */
export function createWatchRunners({ db, commit }: { db: Knex; commit: Commit }) {
  async function reportWaiting(signal: AbortSignal): Promise<void> {
    for (;;) {
      const jobs = await findWaiting(db, REPORT_AFTER_SECONDS, BATCH);
      for (const job of jobs) {
        signal.throwIfAborted();
        await commit(systemCaller(job.tenantId, 'reconcile'), (work) => {
          work.change(reportWaitingChange(job.id, work.now));
          jobRecord.acted(work, 'wait', job);
          jobRecord.emit(work, 'job.waiting', job);
        }).catch(ignoreNoChange(undefined));
      }
      if (jobs.length < BATCH) return;
    }
  }

  return async (signal: AbortSignal): Promise<void> => {
    const steps: (() => Promise<unknown>)[] = [() => purgeRunners(db), () => reportWaiting(signal)];
    await runEach(steps, signal);
  };
}
