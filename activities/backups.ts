import { Context } from '@temporalio/activity';
import type { RunAttributes } from '../temporal/contracts.ts';
import type { Log } from '../platform/log.ts';
import { asJobFailure } from '../services/backups/archives.ts';
import type { BackupSteps } from '../services/backups/backupSteps.ts';
import type { BackupEnds } from '../services/backups/backupEnds.ts';
import type { RestoreEnds } from '../services/backups/restoreCompletion.ts';
import type { RestoreSwap } from '../services/backups/restoreSwap.ts';
import type { RestoreSteps } from '../services/backups/restoreSteps.ts';
import type { Safety } from '../services/backups/preRestoreBackup.ts';
import type { JobSteps, StepTools } from '../services/jobSteps.ts';
import { toFailure } from './jobs.ts';
import { beating, keepBeating, withoutData } from './withoutData.ts';

export type BackupActivities = ReturnType<typeof createBackupActivities>;

type Deps = {
  steps: JobSteps;
  backups: BackupSteps;
  ends: BackupEnds;
  restores: RestoreSteps;
  swap: RestoreSwap;
  restoreEnds: RestoreEnds;
  safety: Safety;
  log: Log;
};

/** What a backup that must be made first is called, and where. */
export type SafetyRun = { backupId: string; workflowId: string; attributes: RunAttributes };

export function createBackupActivities({
  steps,
  backups,
  ends,
  restores,
  swap,
  restoreEnds,
  safety,
  log,
}: Deps) {
  /** Takes a step that may take long, with the log of its job. */
  async function step<T>(jobId: string, take: (tools: StepTools) => Promise<T>): Promise<T> {
    const context = Context.current();
    const stop = keepBeating(context);
    try {
      return await steps.step(
        { jobId, attempt: context.info.attempt, signal: context.cancellationSignal },
        (tools) =>
          take(tools).catch((error: unknown) => {
            throw asJobFailure(error);
          }),
      );
    } catch (error) {
      throw toFailure(error, context, () =>
        log.warn({ err: error, jobId }, 'a step could not be taken'),
      );
    } finally {
      stop();
    }
  }

  return {
    snapshotBackup: (backupId: string, jobId: string): Promise<void> =>
      step(jobId, (tools) => backups.snapshot(backupId, tools)),
    sealBackup: (backupId: string, jobId: string): Promise<void> =>
      step(jobId, (tools) => backups.seal(backupId, tools)),
    verifyArchive: (backupId: string, jobId: string): Promise<void> =>
      step(jobId, (tools) => backups.verify(backupId, tools)),
    completeBackup: (backupId: string): Promise<void> =>
      withoutData(log, () => ends.complete(backupId)),
    pruneBackups: (backupId: string, jobId: string): Promise<void> =>
      step(jobId, (tools) => ends.prune(backupId, tools)),
    failBackup: (backupId: string, code: string): Promise<void> =>
      beating(log, () => ends.fail(backupId, code)),
    removeArchive: (backupId: string): Promise<void> => beating(log, () => ends.remove(backupId)),

    loadArchive: (jobId: string): Promise<void> => step(jobId, (tools) => restores.load(tools)),
    compareRecords: (jobId: string): Promise<void> =>
      step(jobId, (tools) => restores.compare(tools)),
    proveArchive: (jobId: string): Promise<void> =>
      step(jobId, (tools) => restoreEnds.prove(tools)),
    prepareSafety: (jobId: string): Promise<SafetyRun | null> =>
      step(jobId, (tools) => safety(tools)),
    swapRecords: (jobId: string): Promise<void> => step(jobId, (tools) => swap(tools)),
    failRestore: (jobId: string, code: string): Promise<void> =>
      beating(log, () => restoreEnds.fail(jobId, code)),
    cleanRestore: (jobId: string): Promise<void> => beating(log, () => restoreEnds.clean(jobId)),
  };
}
