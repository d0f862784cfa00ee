import { NothingChanged, unlessNothing, type Commit, type Note } from '../../db/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Backup } from '../../db/models/Backup.ts';
import { notifying } from '../../db/core/unitOfWork.ts';
import { isOpen, kept } from '../../domain/backups.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import {
  backupWorkflowId,
  removalWorkflowId,
  type DispatchTask,
} from '../../temporal/contracts.ts';
import type { Log } from '../../platform/log.ts';
import type { StepTools } from '../jobSteps.ts';
import type { Archives } from './archives.ts';
import { markDeleting, readerOf } from './backups.ts';
import { backupEvent, backupSubject, backupView, removed } from './trail.ts';

export type BackupEnds = ReturnType<typeof createBackupEnds>;

type Deps = { log: Log; db: Knex; commit: Commit<DispatchTask>; note: Note; archives: Archives };

/** How many backups of a series one run may prune. */
const MAX_PRUNED = 200;

/** How a backup ends: it counts, has failed, is pruned, or its archive is removed. Every step may be repeated. */
export function createBackupEnds({ db, commit, note, archives, log }: Deps) {
  const find = (id: string) => Backup.query(db).findById(id).throwIfNotFound();

  /** Removes the archive of a backup that failed, and what was begun of it. */
  async function clean(id: string): Promise<void> {
    const backup = await find(id);
    if (backup.status !== 'failed' || backup.pending === null) return;
    await archives.storeOf(backup).remove(backup.archive);
    await note(async (on) =>
      Backup.query(on).patch({ pending: null }).where({ id, status: 'failed' }),
    );
  }

  return {
    /** From now on it counts. */
    async complete(id: string): Promise<void> {
      const backup = await find(id);
      if (!isOpen(backup)) return;
      await commit(systemCaller(backup.tenantId, backupWorkflowId(id)), async (work) => {
        const done = await Backup.query(await work.trx())
          .patch({
            status: 'completed',
            pending: null,
            updatedAt: work.now,
            finishedAt: work.now,
            version: backup.version + 1,
          })
          .where({ id })
          .whereIn('status', ['queued', 'running'])
          .returning('*')
          .first();
        if (!done) throw new NothingChanged();
        work.audit('backup.complete', backupSubject(done), {
          before: backupView(backup),
          after: backupView(done),
        });
        work.emit('backup.completed', backupSubject(done), backupEvent(done));
      }).catch(unlessNothing(undefined));
    },

    /** Ends a backup without an archive. `code` says why; the log of its job says more. */
    async fail(id: string, code: string): Promise<void> {
      const backup = await find(id);
      if (isOpen(backup)) {
        await commit(systemCaller(backup.tenantId, backupWorkflowId(id)), async (work) => {
          const ended: Partial<Backup> = {
            status: 'failed',
            error: { code, message: MESSAGES[code] ?? `The backup failed: ${code}` },
            pending: { attempt: 'none', upload: null },
            updatedAt: work.now,
            finishedAt: work.now,
            checkAt: work.now,
            version: backup.version + 1,
          };
          const done = await Backup.query(await work.trx())
            .patch(ended)
            .where({ id })
            .whereIn('status', ['queued', 'running'])
            .returning('*')
            .first();
          if (!done) throw new NothingChanged();
          work.audit('backup.fail', backupSubject(done), {
            before: backupView(backup),
            after: backupView(done),
            outcome: 'failed',
          });
          work.emit('backup.failed', backupSubject(done), backupEvent(done));
        }).catch(unlessNothing(undefined));
      }
      // What cannot be removed now is tried again by the reconciler; the end of the backup does not wait for it.
      await clean(id).catch((error: unknown) =>
        log.warn(
          { err: error, backupId: id },
          'what a failed backup has left could not be removed yet',
        ),
      );
    },

    clean,

    /** Deletes the backups of a series that its rule does not keep. */
    async prune(id: string, tools: StepTools): Promise<void> {
      const { tenantId, label, mode, sections, keep, status } = await find(id);
      if (status !== 'completed' || Object.keys(keep).length === 0) return;
      const series = await Backup.query(db)
        .where({ tenant_id: tenantId, label, mode, status: 'completed' })
        .whereRaw('sections = ?::jsonb', [JSON.stringify(sections)])
        .select('id', 'snapshot_at');
      const stay = kept(
        keep,
        series.map((each) => ({ id: each.id, at: each.snapshotAt ?? new Date(0) })),
      );
      const gone = series.filter((each) => !stay.has(each.id)).slice(0, MAX_PRUNED);
      for (const each of gone) {
        await commit(systemCaller(tenantId, backupWorkflowId(id)), async (work) => {
          const backup = await Backup.query(await work.trx())
            .findById(each.id)
            .where({ status: 'completed' })
            .forUpdate();
          if (!backup || (await readerOf(await work.trx(), backup.id))) throw new NothingChanged();
          await markDeleting(work, backup, `not kept after ${id}`);
        }).catch(unlessNothing(undefined));
      }
      if (gone.length > 0)
        tools.log('info', `${gone.length} older backups of the series are deleted`, {
          backupIds: gone.map((each) => each.id),
        });
    },

    /** Removes the archive of a backup that was deleted, and then says so. */
    async remove(id: string): Promise<void> {
      const backup = await find(id);
      if (backup.status !== 'deleting') return;
      await archives.storeOf(backup).remove(backup.archive);
      await commit(systemCaller(backup.tenantId, removalWorkflowId(id)), async (work) => {
        const ended: Partial<Backup> = {
          status: 'deleted',
          pending: null,
          deletedAt: work.now,
          updatedAt: work.now,
          version: backup.version + 1,
          finishedAt: backup.finishedAt ?? work.now,
        };
        const done = await Backup.query(await work.trx())
          .patch(ended)
          .where({ id, status: 'deleting' })
          .returning('*')
          .first();
        if (!done) throw new NothingChanged();
        const notify = notifying([removed(id)]);
        await (await work.trx()).raw(`SELECT ${notify.sql}`, notify.bindings);
        work.audit('backup.removed', backupSubject(done), { after: backupView(done) });
        work.emit('backup.deleted', backupSubject(done), backupEvent(done));
      }).catch(unlessNothing(undefined));
    },
  };
}

const MESSAGES: Readonly<Record<string, string>> = {
  cancelled: 'The job of the backup was cancelled',
  timed_out: 'A step took longer than it may',
  workflow_lost: 'The workflow that made the backup is gone',
  workflow_closed: 'The workflow that made the backup closed without an outcome',
  store_unavailable: 'The store of archives was away',
  store_refused: 'The store of archives refused',
  store_full: 'There was no room in the store of archives',
  permission_lost: 'Whoever the backup was made for may not make it any more',
};
