import { endInProgress, findSeries, notifyTopic } from '../../db/backups/backups.ts';
import { findJobUsingArchive } from '../../db/backups/restoreRuns.ts';
import {
  ignoreNoChange,
  NoChange,
  type Commit,
  type WriteUnaudited,
} from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Backup } from '../../db/models/Backup.ts';
import { findHoldOnBackups } from '../../db/retention/holds.ts';
import { isInProgress } from '../../domain/backups/backups.ts';
import type { JobError } from '../../domain/jobs/jobs.ts';
import { selectRetained } from '../../domain/backups/retention.ts';
import { backupWorkflowId, removalWorkflowId } from '../../domain/dispatch/workflowIds.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import { counted } from '../../domain/shared/counted.ts';
import type { Log } from '../../platform/log.ts';
import type { StepTools } from '../jobs/multiStep.ts';
import type { Archives } from './archives.ts';
import { archiveRemovedTopic, backupRecord } from './backupAudit.ts';
import { markDeleting } from './backups.ts';

export type BackupCompletion = ReturnType<typeof createBackupCompletion>;

type Deps = {
  log: Log;
  db: Knex;
  commit: Commit;
  writeUnaudited: WriteUnaudited;
  archives: Archives;
};

/** The maximum number of backups that one run prunes. */
const MAX_PRUNED = 200;

const FAILURE_MESSAGES: Readonly<Record<string, string>> = {
  cancelled: 'The job of the backup was cancelled',
  timed_out: 'A step exceeded its time limit',
  workflow_lost: 'The workflow that made the backup no longer exists',
  workflow_closed: 'The workflow that made the backup closed without an outcome',
  store_unavailable: 'The archive store was unavailable',
  store_refused: 'The archive store refused the request',
  store_full: 'The archive store was full',
  permission_lost: 'The owner of the job no longer holds the required permission',
};

/** The ends of a backup: completed, failed, pruned, archive removed. Each step may be repeated. */
export function createBackupCompletion({ db, commit, writeUnaudited, archives, log }: Deps) {
  const find = (id: string) => Backup.query(db).findById(id).throwIfNotFound();

  /** Removes the archive and unfinished uploads of a failed backup. */
  async function removeFailedArchive(backup: Backup): Promise<void> {
    if (!hasRemains(backup)) return;
    await archives.storeOf(backup).remove(backup.archive);
    await writeUnaudited(async (on) =>
      Backup.query(on).patch({ pending: null }).where({ id: backup.id, status: 'failed' }),
    );
  }

  async function recordFailure(backup: Backup, code: string): Promise<void> {
    const caller = systemCaller(backup.tenantId, backupWorkflowId(backup.id));
    await commit(caller, async (work) => {
      const failed = await endInProgress(await work.trx(), backup.id, {
        status: 'failed',
        error: { code, message: FAILURE_MESSAGES[code] ?? `The backup failed: ${code}` },
        // Marks that the store may contain something to remove.
        pending: { attempt: 'none', upload: null },
        updatedAt: work.now,
        finishedAt: work.now,
        checkAt: work.now,
        version: backup.version + 1,
      });
      if (!failed) throw new NoChange();
      work.audit('backup.fail', backupRecord.subject(failed), {
        before: backupRecord.auditView(backup),
        after: backupRecord.auditView(failed),
        outcome: 'failed',
      });
      backupRecord.emit(work, 'backup.failed', failed);
    }).catch(ignoreNoChange(undefined));
  }

  return {
    /** Marks a backup as completed. */
    async complete(id: string): Promise<void> {
      const backup = await find(id);
      if (!isInProgress(backup)) return;
      await commit(systemCaller(backup.tenantId, backupWorkflowId(id)), async (work) => {
        const completed = await endInProgress(await work.trx(), id, {
          status: 'completed',
          pending: null,
          updatedAt: work.now,
          finishedAt: work.now,
          version: backup.version + 1,
        });
        if (!completed) throw new NoChange();
        backupRecord.acted(work, 'complete', completed, { before: backup, after: completed });
        backupRecord.emit(work, 'backup.completed', completed);
      }).catch(ignoreNoChange(undefined));
    },

    /** Marks a backup as failed with an error code. The log of its job has the details. */
    async fail(id: string, code: string): Promise<void> {
      const backup = await find(id);
      if (isInProgress(backup)) await recordFailure(backup, code);
      // The reconciler starts a workflow that tries again if the store is unavailable.
      await find(id)
        .then(removeFailedArchive)
        .catch((error: unknown) =>
          log.warn(
            { err: error, backupId: id },
            'cannot remove the archive of a failed backup yet',
          ),
        );
    },

    /** Deletes the backups of a series that its retention policy does not keep. */
    async prune(id: string, tools: StepTools): Promise<void> {
      const { tenantId, label, mode, sections, retention, status } = await find(id);
      if (status !== 'completed' || Object.keys(retention).length === 0) return;
      const series = await findSeries(db, { tenantId, label, mode, sections });
      const retained = selectRetained(retention, series);
      const unretained = series.filter((each) => !retained.has(each.id));
      const unreachable = unretained.filter((each) => archives.storeProblemOf(each) !== null);
      const expired = unretained.filter((each) => !unreachable.includes(each)).slice(0, MAX_PRUNED);
      if (unreachable[0]) {
        const kept = counted(unreachable.length, 'older backup');
        tools.log('warn', `Kept: ${kept}. ${archives.storeProblemOf(unreachable[0])}`);
      }
      if (expired.length > 0 && (await findHoldOnBackups(db, tenantId))) {
        tools.log(
          'info',
          `Kept because of a legal hold: ${counted(expired.length, 'older backup')}`,
        );
        return;
      }
      for (const each of expired) {
        await commit(systemCaller(tenantId, backupWorkflowId(id)), async (work) => {
          const trx = await work.trx();
          const backup = await Backup.query(trx)
            .findById(each.id)
            .where({ status: 'completed' })
            .forUpdate();
          if (!backup || (await findJobUsingArchive(trx, backup.id))) throw new NoChange();
          await markDeleting(work, backup, `not retained after ${id}`);
        }).catch(ignoreNoChange(undefined));
      }
      if (expired.length > 0)
        tools.log('info', `Deleted: ${counted(expired.length, 'older backup')} of the series`, {
          backupIds: expired.map((each) => each.id),
        });
    },

    /** Removes the archive of a deleted backup and marks the backup as deleted, or what a failed one has left. */
    async remove(id: string): Promise<void> {
      const backup = await find(id);
      if (backup.status === 'failed') return removeFailedArchive(backup);
      if (backup.status !== 'deleting') return;
      await archives.storeOf(backup).remove(backup.archive);
      await commit(systemCaller(backup.tenantId, removalWorkflowId(id)), async (work) => {
        const trx = await work.trx();
        const deleted = await Backup.query(trx)
          .patch({
            status: 'deleted',
            pending: null,
            deletedAt: work.now,
            updatedAt: work.now,
            version: backup.version + 1,
            finishedAt: backup.finishedAt ?? work.now,
          })
          .where({ id, status: 'deleting' })
          .returning('*')
          .first();
        if (!deleted) throw new NoChange();
        await notifyTopic(trx, archiveRemovedTopic(id));
        backupRecord.acted(work, 'remove_archive', deleted, { after: deleted });
        backupRecord.emit(work, 'backup.deleted', deleted);
      }).catch(ignoreNoChange(undefined));
    },

    /**
     * Ends the removal of an archive that cannot be removed. The backup is `failed` then, says why, and can be deleted
     * again.
     */
    async failRemoval(id: string, cause: JobError): Promise<void> {
      const backup = await find(id);
      const isDeleting = backup.status === 'deleting';
      if (!isDeleting && !hasRemains(backup)) return;
      await commit(systemCaller(backup.tenantId, removalWorkflowId(id)), async (work) => {
        const failed = await Backup.query(await work.trx())
          .patch({
            status: 'failed',
            error: removalError(backup, cause),
            pending: null,
            updatedAt: work.now,
            version: backup.version + 1,
          })
          .where({ id, status: backup.status, version: backup.version })
          .returning('*')
          .first();
        if (!failed) throw new NoChange();
        backupRecord.acted(work, 'fail_removal', failed, { before: backup, after: failed });
        if (isDeleting) backupRecord.emit(work, 'backup.failed', failed);
      }).catch(ignoreNoChange(undefined));
    },
  };
}

/** True while the store may have something of a failed backup. */
const hasRemains = ({ status, pending }: Backup): boolean =>
  status === 'failed' && pending !== null;

/** The error of a backup whose archive could not be removed; a failed one keeps the code that it has failed with. */
function removalError({ status, error }: Backup, { code, message }: JobError): JobError {
  const reason = `Its archive could not be removed (${code}: ${message}). Delete the backup again.`;
  return status === 'failed' && error
    ? { code: error.code, message: `${error.message}. ${reason}` }
    : { code: 'removal_failed', message: reason };
}
