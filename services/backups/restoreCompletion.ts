import { dropScratch, scratchOf } from '../../db/backups/scratch.ts';
import { NothingChanged, unlessNothing, type Commit } from '../../db/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Backup, RestoreRun } from '../../db/models/Backup.ts';
import { Job } from '../../db/models/Job.ts';
import { systemCaller, type Caller } from '../../domain/shared/caller.ts';
import { jobWorkflowId, type DispatchTask } from '../../temporal/contracts.ts';
import type { StepTools } from '../jobSteps.ts';
import { told } from './restoreSwap.ts';
import { backupSubject } from './trail.ts';

export type RestoreEnds = ReturnType<typeof createRestoreEnds>;

/** How the workflow that loads an archive ends. */
export function createRestoreEnds({ db, commit }: { db: Knex; commit: Commit<DispatchTask> }) {
  async function callerAt(jobId: string, { tenantId }: Backup): Promise<Caller> {
    const { authority } = await Job.query(db).findById(jobId).throwIfNotFound();
    return { ...systemCaller(tenantId, jobWorkflowId(jobId)), actorId: authority.actorId };
  }

  return {
    /** Notes that the archive was loaded, compared with itself and brought up to date. */
    async prove({ jobId, log }: StepTools): Promise<void> {
      const { backupId } = await RestoreRun.query(db).findById(jobId).throwIfNotFound();
      await commit(
        await callerAt(jobId, await Backup.query(db).findById(backupId).throwIfNotFound()),
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
              provenAt: work.now,
              verifiedAt: work.now,
              version: backup.version + 1,
              updatedAt: work.now,
            });
          await RestoreRun.query(trx).findById(jobId).patch({ outcome, doneAt: work.now });
          work.audit('backup.prove', backupSubject(backup), { after: { jobId, ...outcome } });
        },
      );
      log('info', 'The archive was loaded, compared and brought up to date: it can be restored');
    },

    /** Tells that a restore came to nothing. */
    async fail(jobId: string, code: string): Promise<void> {
      const run = await RestoreRun.query(db).findById(jobId);
      if (run?.purpose !== 'restore' || run.outcome) return;
      const backup = await Backup.query(db).findById(run.backupId).throwIfNotFound();
      await commit(await callerAt(jobId, backup), async (work) => {
        const trx = await work.trx();
        const locked = await RestoreRun.query(trx).findById(jobId).forUpdate().throwIfNotFound();
        if (locked.outcome) throw new NothingChanged();
        await RestoreRun.query(trx)
          .findById(jobId)
          .patch({ outcome: { error: code }, doneAt: work.now });
        work.audit('backup.restore', backupSubject(backup), {
          after: { jobId, error: code },
          outcome: 'failed',
        });
        work.emit('restore.failed', backupSubject(backup), {
          ...told(backup, jobId, run, backup.sections),
          created: 0,
          changed: 0,
          deleted: 0,
          error: code,
        });
      }).catch(unlessNothing(undefined));
    },

    /** Forgets what was loaded. */
    clean: (jobId: string): Promise<void> => dropScratch(db, scratchOf(jobId)),
  };
}
