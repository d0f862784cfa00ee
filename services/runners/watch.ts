import { ignoreNoChange, NoChange, type Commit } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { notifyTopics } from '../../db/core/unitOfWork.ts';
import { RemoteType } from '../../db/models/RemoteType.ts';
import { findUnannounced, lockUnannounced, TYPES_TOPIC } from '../../db/runners/types.ts';
import { findWaiting, purgeRunners, reportWaitingChange } from '../../db/runners/runners.ts';
import type { Job } from '../../db/models/Job.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import { runEach } from '../../domain/shared/runEach.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import type { Log } from '../../platform/log.ts';
import { jobRecord } from '../jobs/jobAudit.ts';
import { remoteTypeRecord } from './typeAudit.ts';
import { forEachDue } from '../shared/forEachDue.ts';

/** A job that no runner takes is an event after this time, in seconds. */
const REPORT_AFTER_SECONDS = 300;

type Deps = { db: Knex; commit: Commit; log: Log };

/**
 * Creates the function that reports jobs which have waited long and that no living runner may start, each once
 * (`job.waiting`), and forgets runners that ended without a word, and types that were never accepted and that nobody
 * announces any more.
 */
export function createWatchRunners({ db, commit, log }: Deps) {
  const report = (job: Job): Promise<boolean> =>
    commit(systemCaller(job.tenantId, 'reconcile'), (work) => {
      work.change(reportWaitingChange(job.id, work.now));
      jobRecord.acted(work, 'wait', job);
      jobRecord.emit(work, 'job.waiting', job);
      return true;
    }).catch(ignoreNoChange(false));

  const reportWaiting = (signal: AbortSignal): Promise<void> =>
    forEachDue(log, signal, {
      name: 'reporting a job that waits for a runner',
      find: (limit) => findWaiting(db, REPORT_AFTER_SECONDS, limit),
      apply: report,
    });

  const purgeType = ({ name }: RemoteType): Promise<boolean> =>
    commit(systemCaller(PLATFORM, 'reconcile'), async (work) => {
      const trx = await work.trx();
      const type = await lockUnannounced(trx, name);
      if (!type) throw new NoChange();
      await RemoteType.query(trx).deleteById(name);
      remoteTypeRecord.deleted(work, type);
      await notifyTopics(trx, [TYPES_TOPIC]);
      return true;
    }).catch(ignoreNoChange(false));

  const purgeTypes = (signal: AbortSignal): Promise<void> =>
    forEachDue(log, signal, {
      name: 'removing a job type that no runner announces',
      find: (limit) => findUnannounced(db, limit),
      apply: purgeType,
    });

  return async (signal: AbortSignal): Promise<void> => {
    const steps: (() => Promise<unknown>)[] = [
      () => purgeRunners(db),
      () => purgeTypes(signal),
      () => reportWaiting(signal),
    ];
    await runEach(steps, signal);
  };
}
