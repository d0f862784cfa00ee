import type { Commit } from '../../db/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Backup, RestoreRun } from '../../db/models/Backup.ts';
import { SAFETY_KEEP, SAFETY_LABEL, sectionsAt } from '../../domain/backups.ts';
import {
  backupWorkflowId,
  type DispatchTask,
  type RunAttributes,
} from '../../temporal/contracts.ts';
import type { StepTools } from '../jobSteps.ts';
import type { Backups } from './backups.ts';
import type { RestorePayload } from './restoreSteps.ts';

type Deps = { db: Knex; commit: Commit<DispatchTask>; backups: Pick<Backups, 'insert'> };

/** Another attempt has made it. */
class Taken extends Error {
  readonly backupId: string;

  constructor(backupId: string) {
    super(backupId);
    this.backupId = backupId;
  }
}

export type Safety = ReturnType<typeof createSafety>;

/** Makes the record of the backup that is taken before a restore, unless the request says that none is. */
export function createSafety({ db, commit, backups }: Deps) {
  return async function safety({
    jobId,
    caller,
    payload,
    log,
  }: StepTools): Promise<{
    backupId: string;
    workflowId: string;
    attributes: RunAttributes;
  } | null> {
    if ((payload as RestorePayload).safetyBackup === false) return null;
    const run = await RestoreRun.query(db).findById(jobId).throwIfNotFound();
    const { tenantId } = await Backup.query(db).findById(run.backupId).throwIfNotFound();
    const backupId =
      run.safetyBackupId ??
      (await commit({ ...caller, tenantId }, async (work) => {
        const locked = await RestoreRun.query(await work.trx())
          .findById(jobId)
          .forUpdate()
          .throwIfNotFound();
        if (locked.safetyBackupId !== null) throw new Taken(locked.safetyBackupId);
        const made = backups.insert(
          work,
          { ...caller, tenantId },
          { label: SAFETY_LABEL, keep: SAFETY_KEEP },
          { sections: sectionsAt(tenantId), includes: [], jobId: null },
        );
        await RestoreRun.query(await work.trx())
          .findById(locked.jobId)
          .patch({ safetyBackupId: made.id });
        return made.id;
      }).catch((error: unknown) => {
        if (error instanceof Taken) return error.backupId;
        throw error;
      }));
    log('info', `What is here now is backed up as ${backupId}`);
    return {
      backupId,
      workflowId: backupWorkflowId(backupId),
      attributes: { tenant: tenantId, jobType: 'backup.create', record: backupId },
    };
  };
}
