import { dropStaging, stagingSchema } from '../../db/backups/staging.ts';
import { NoChange, ignoreNoChange, type Commit } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Backup, RestoreRun } from '../../db/models/Backup.ts';
import { Job } from '../../db/models/Job.ts';
import { systemCaller, type Caller } from '../../domain/shared/caller.ts';
import { jobWorkflowId } from '../../domain/dispatch/workflowIds.ts';
import type { StepTools } from '../jobs/multiStep.ts';
import { restoreEventData } from './applyRestore.ts';
import { backupRecord } from './backupAudit.ts';

export type RestoreCompletion = ReturnType<typeof createRestoreCompletion>;

/** The ends of a workflow that loads an archive. Each may be repeated. */
export function createRestoreCompletion({ db, commit }: { db: Knex; commit: Commit }) {
  /** The actor of the job, acting at the tenant of the backup. */
  async function callerForJob(jobId: string, { tenantId }: Backup): Promise<Caller> {
    const { authority } = await Job.query(db).findById(jobId).throwIfNotFound();
    return { ...systemCaller(tenantId, jobWorkflowId(jobId)), actorId: authority.actorId };
  }

  return {
    /** Records a successful test restore. */
    async recordRestoreTest({ jobId, log }: StepTools): Promise<void> {
      const { backupId } = await RestoreRun.query(db).findById(jobId).throwIfNotFound();
      await commit(
        await callerForJob(jobId, await Backup.query(db).findById(backupId).throwIfNotFound()),
        async (work) => {
          const trx = await work.trx();
          const backup = await Backup.query(trx).findById(backupId).forUpdate().throwIfNotFound();
          const outcome = {
            backupId,
            rows: backup.rows,
            tables: backup.manifest?.tables.length ?? 0,
          };
          await Backup.query(trx)
            .findById(backupId)
            .patch({
              restoreTestedAt: work.now,
              verifiedAt: work.now,
              version: backup.version + 1,
              updatedAt: work.now,
            });
          await RestoreRun.query(trx).findById(jobId).patch({ outcome, doneAt: work.now });
          backupRecord.acted(work, 'test_restore', backup, { extra: { jobId, ...outcome } });
        },
      );
      log('info', 'The archive was loaded completely, migrated and compared: it can be restored');
    },

    /** Records that a restore has failed, with an error code. */
    async fail(jobId: string, code: string): Promise<void> {
      const run = await RestoreRun.query(db).findById(jobId);
      if (run?.purpose !== 'restore' || run.outcome) return;
      const backup = await Backup.query(db).findById(run.backupId).throwIfNotFound();
      await commit(await callerForJob(jobId, backup), async (work) => {
        const trx = await work.trx();
        const locked = await RestoreRun.query(trx).findById(jobId).forUpdate().throwIfNotFound();
        if (locked.outcome) throw new NoChange();
        await RestoreRun.query(trx)
          .findById(jobId)
          .patch({ outcome: { error: code }, doneAt: work.now });
        work.audit('backup.restore', backupRecord.subject(backup), {
          after: { jobId, error: code },
          outcome: 'failed',
        });
        work.emit('restore.failed', backupRecord.subject(backup), {
          ...restoreEventData(backup, run, backup.sections),
          created: 0,
          changed: 0,
          deleted: 0,
          error: code,
        });
      }).catch(ignoreNoChange(undefined));
    },

    /** Drops the staging schema of a job. */
    dropStaging: (jobId: string): Promise<void> => dropStaging(db, stagingSchema(jobId)),
  };
}
