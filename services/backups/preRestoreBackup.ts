import type { Commit } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Backup, RestoreRun } from '../../db/models/Backup.ts';
import {
  PRE_RESTORE_RETENTION,
  PRE_RESTORE_LABEL,
  sectionsForTenant,
} from '../../domain/backups/backups.ts';
import type { RunAttributes } from '../../domain/dispatch/tasks.ts';
import { backupWorkflowId } from '../../domain/dispatch/workflowIds.ts';
import type { StepTools } from '../jobs/multiStep.ts';
import type { Backups } from './backups.ts';
import type { RestorePayload } from './restoreRun.ts';

type Deps = { db: Knex; commit: Commit; backups: Pick<Backups, 'insert'> };

/** Another attempt has created the backup. */
class AlreadyCreated extends Error {
  readonly backupId: string;

  constructor(backupId: string) {
    super(backupId);
    this.backupId = backupId;
  }
}

export type PreRestoreBackup = ReturnType<typeof createPreRestoreBackup>;

/**
 * Creates the record of the backup that is made before a restore, once. Returns null when the
 * request asks for none.
 */
export function createPreRestoreBackup({ db, commit, backups }: Deps) {
  return async function preRestoreBackup({ jobId, caller, payload, log }: StepTools): Promise<{
    backupId: string;
    workflowId: string;
    attributes: RunAttributes;
  } | null> {
    if ((payload as RestorePayload).preRestoreBackup === false) return null;
    const run = await RestoreRun.query(db).findById(jobId).throwIfNotFound();
    const { tenantId } = await Backup.query(db).findById(run.backupId).throwIfNotFound();
    const backupId =
      run.preRestoreBackupId ??
      (await commit({ ...caller, tenantId }, async (work) => {
        const locked = await RestoreRun.query(await work.trx())
          .findById(jobId)
          .forUpdate()
          .throwIfNotFound();
        if (locked.preRestoreBackupId !== null) throw new AlreadyCreated(locked.preRestoreBackupId);
        const backup = backups.insert(
          work,
          { ...caller, tenantId },
          { label: PRE_RESTORE_LABEL, retention: PRE_RESTORE_RETENTION },
          { sections: sectionsForTenant(tenantId), includes: [], jobId: null },
        );
        await RestoreRun.query(await work.trx())
          .findById(locked.jobId)
          .patch({ preRestoreBackupId: backup.id });
        return backup.id;
      }).catch((error: unknown) => {
        if (error instanceof AlreadyCreated) return error.backupId;
        throw error;
      }));
    log('info', `The current records are backed up as ${backupId}`);
    return {
      backupId,
      workflowId: backupWorkflowId(backupId),
      attributes: { tenant: tenantId, jobType: 'backup.create', record: backupId },
    };
  };
}
