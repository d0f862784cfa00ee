import { findStagedJobs, dropStaging, stagingSchema } from '../../db/backups/staging.ts';
import {
  findJobEnd,
  findEndedArchives,
  unfinishedRestores,
  claimUnfinishedBackups,
} from '../../db/backups/unfinished.ts';
import type { Commit } from '../../db/core/commit.ts';
import { readDatabaseTime } from '../../db/core/databaseTime.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { Backup } from '../../db/models/Backup.ts';
import { isInProgress } from '../../domain/backups/backups.ts';
import { runEach } from '../../domain/shared/runEach.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import type { ArchiveStore } from '../../platform/stores/store.ts';
import type { Log } from '../../platform/log.ts';
import { removeBackupTask, type DescribeWorkflow } from '../../domain/dispatch/tasks.ts';
import { backupWorkflowId, removalWorkflowId } from '../../domain/dispatch/workflowIds.ts';
import { reconcileInBatches } from '../shared/reconcileInBatches.ts';
import { mapConcurrently } from '../shared/mapConcurrently.ts';
import type { Archives } from './archives.ts';
import type { BackupCompletion } from './backupCompletion.ts';
import type { RestoreCompletion } from './restoreCompletion.ts';
import { backupRecord } from './backupAudit.ts';

export type BackupReconcile = ReturnType<typeof createBackupReconcile>;

type Deps = {
  archives: Archives;
  db: Knex;
  commit: Commit;
  log: Log;
  describeWorkflow: DescribeWorkflow;
  backupCompletion: BackupCompletion;
  restoreCompletion: RestoreCompletion;
  /** Backups are checked when they have not changed for this time. */
  graceMs: number;
};

/**
 * Repairs what killed processes leave behind: backups whose workflow is missing or closed, archives
 * of deleted backups, unfinished uploads, staging schemas and restores without an outcome.
 */
export function createBackupReconcile({
  db,
  commit,
  log,
  describeWorkflow,
  archives,
  backupCompletion,
  restoreCompletion,
  graceMs,
}: Deps) {
  const workflowIdOf = (backup: Backup) =>
    isInProgress(backup) ? backupWorkflowId(backup.id) : removalWorkflowId(backup.id);

  /** Fails a backup whose workflow has ended, once its job has ended. Returns true if it did. */
  async function reconcileInProgress(backup: Backup): Promise<boolean> {
    const state = await describeWorkflow(backupWorkflowId(backup.id));
    if (state.found && state.status === 'running') return false;
    const ended = await findJobEnd(db, backup.id);
    if (!state.found && ended === null) return false;
    log.warn(
      { backupId: backup.id, status: backup.status, workflow: state },
      'failing a backup whose workflow is missing or closed',
    );
    await backupCompletion.fail(
      backup.id,
      ended?.code ?? (state.found ? 'workflow_closed' : 'workflow_lost'),
    );
    return true;
  }

  /**
   * Starts the workflow again that removes the archive of a deleted or failed backup. It is never removed here: work that
   * ends its workers has a bound in its workflow only.
   */
  async function reconcileRemoval(backup: Backup): Promise<boolean> {
    const state = await describeWorkflow(removalWorkflowId(backup.id));
    if (state.found && state.status === 'running') return false;
    await commit(systemCaller(backup.tenantId, 'reconcile'), (work) => {
      backupRecord.acted(work, 'redispatch', backup);
      work.dispatch(removeBackupTask(backup));
    });
    return true;
  }

  /** Aborts uploads of archives that have ended. Other installations may use the store, too. */
  async function clearUnfinishedUploads(store: ArchiveStore, signal: AbortSignal): Promise<void> {
    const unfinished = await store.listUnfinished();
    const ended = unfinished.length === 0 ? [] : await findEndedArchives(db, unfinished);
    await mapConcurrently(log, signal, 'aborting unfinished uploads', ended, (name) =>
      store.abortUploads(name).then(() => false),
    );
  }

  async function repair(backup: Backup, hasPendingTask: boolean): Promise<boolean> {
    if (hasPendingTask) return false;
    return isInProgress(backup) ? reconcileInProgress(backup) : reconcileRemoval(backup);
  }

  async function reconcileBackups(signal: AbortSignal): Promise<number> {
    const now = await readDatabaseTime(db);
    return reconcileInBatches({ db, log }, signal, {
      name: 'reconciling a backup',
      repair,
      workflowIdOf,
      claimBatch: (limit) =>
        claimUnfinishedBackups(db, { now, before: new Date(now.getTime() - graceMs), limit }),
    });
  }

  async function dropStagings(signal: AbortSignal): Promise<number> {
    const stagedJobs = await findStagedJobs(db);
    const ended = stagedJobs.length === 0 ? [] : await unfinishedRestores.findEnded(db, stagedJobs);
    return mapConcurrently(log, signal, 'dropping a staging schema', ended, (jobId) =>
      dropStaging(db, stagingSchema(jobId)).then(() => true),
    );
  }

  /** Aborted uploads are no repairs. */
  const clearStores = (signal: AbortSignal): Promise<number> =>
    mapConcurrently(log, signal, 'listing unfinished uploads', archives.listStores(), (store) =>
      clearUnfinishedUploads(store, signal).then(() => false),
    );

  const failRestores = async (signal: AbortSignal): Promise<number> =>
    mapConcurrently(
      log,
      signal,
      'failing a restore',
      await unfinishedRestores.findWithoutOutcome(db),
      ({ jobId, code }) => restoreCompletion.fail(jobId, code ?? 'workflow_lost').then(() => true),
    );

  /**
   * Repairs everything that is due, until `signal` aborts. Returns the number of repairs. Errors: those
   * of `runEach`.
   */
  return async function reconcile(signal: AbortSignal): Promise<number> {
    const steps = [reconcileBackups, dropStagings, clearStores, failRestores];
    const repairs = await runEach(
      steps.map((step) => () => step(signal)),
      signal,
    );
    return repairs.reduce((sum, count) => sum + count, 0);
  };
}
