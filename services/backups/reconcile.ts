import { scratchJobs, dropScratch, scratchOf } from '../../db/backups/scratch.ts';
import {
  endedJob,
  goingArchives,
  openRestores,
  takeUnsettledBackups,
} from '../../db/backups/unfinished.ts';
import type { Commit } from '../../db/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { Backup } from '../../db/models/Backup.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import type { ArchiveStore } from '../../platform/stores/store.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import {
  backupWorkflowId,
  removalWorkflowId,
  removeBackup,
  type DispatchTask,
  type InspectWorkflow,
} from '../../temporal/contracts.ts';
import { inRounds } from '../inRounds.ts';
import { inTurns } from '../inTurns.ts';
import type { Archives } from './archives.ts';
import type { BackupEnds } from './backupEnds.ts';
import type { RestoreEnds } from './restoreCompletion.ts';
import { backupSubject } from './trail.ts';

export type BackupReconcile = ReturnType<typeof createBackupReconcile>;

type Deps = {
  archives: Archives;
  db: Knex;
  commit: Commit<DispatchTask>;
  clock: Clock;
  log: Log;
  inspect: InspectWorkflow;
  ends: BackupEnds;
  restoreEnds: RestoreEnds;
  /** How long what begins is left alone. */
  graceMs: number;
};

/**
 * Finds backups whose run is gone or closed, archives that are to be removed, and what was loaded for jobs that have ended, so that no
 * archive is without its record, no record waits for ever, and nothing that was loaded stays.
 */
export function createBackupReconcile({
  db,
  commit,
  clock,
  log,
  inspect,
  archives,
  ends,
  restoreEnds,
  graceMs,
}: Deps) {
  const isGoing = (backup: Backup) => backup.status === 'queued' || backup.status === 'running';
  const workflowIdOf = (backup: Backup) =>
    isGoing(backup) ? backupWorkflowId(backup.id) : removalWorkflowId(backup.id);

  /** A backup that is made below a job; that ends first. */
  async function lookAtGoing(backup: Backup): Promise<boolean> {
    const state = await inspect(backupWorkflowId(backup.id));
    if (state.found && state.status === 'running') return false;
    const ended = await endedJob(db, backup.id);
    if (!state.found && ended === null) return false;
    log.warn(
      { backupId: backup.id, status: backup.status, workflow: state },
      'ending a backup whose run is gone',
    );
    await ends.fail(backup.id, ended?.code ?? (state.found ? 'workflow_closed' : 'workflow_lost'));
    return true;
  }

  async function lookAtRemoval(backup: Backup): Promise<boolean> {
    const state = await inspect(removalWorkflowId(backup.id));
    if (state.found && state.status === 'running') return false;
    if (state.found) await ends.remove(backup.id);
    else {
      await commit(systemCaller(backup.tenantId, 'reconcile'), (work) => {
        work.audit('backup.redispatch', backupSubject(backup));
        work.dispatch(removeBackup(backup));
      });
    }
    return true;
  }

  /** What was begun in a store, by processes that were killed, for backups that are not being made. */
  async function clear(store: ArchiveStore): Promise<void> {
    const begun = await store.unfinished();
    const going = new Set(begun.length === 0 ? [] : await goingArchives(db, begun));
    for (const name of begun) if (!going.has(name)) await store.clear(name);
  }

  async function look(backup: Backup, owed: boolean): Promise<boolean> {
    if (owed) return false;
    if (isGoing(backup)) return lookAtGoing(backup);
    if (backup.status === 'deleting') return lookAtRemoval(backup);
    return ends.clean(backup.id).then(() => true);
  }

  /** One round over everything that is due, until `signal` aborts. Returns how much was put right. */
  return async function reconcile(signal: AbortSignal): Promise<number> {
    const now = clock.now();
    const settled = await inRounds({ db, log }, signal, {
      name: 'reconciling a backup',
      look,
      workflowIdOf,
      take: (limit) =>
        takeUnsettledBackups(db, { now, before: new Date(now.getTime() - graceMs), limit }),
    });
    const left = await scratchJobs(db);
    const dropped = await inTurns(
      log,
      signal,
      'dropping what was loaded',
      left.length === 0 ? [] : await openRestores.ended(db, left),
      (jobId) => dropScratch(db, scratchOf(jobId)).then(() => true),
    );
    await inTurns(log, signal, 'clearing a store', archives.all(), (store) =>
      clear(store).then(() => true),
    );
    const failed = await inTurns(
      log,
      signal,
      'ending a restore',
      await openRestores.withoutEnd(db),
      (jobId) => restoreEnds.fail(jobId, 'workflow_lost').then(() => true),
    );
    return settled + dropped + failed;
  };
}
