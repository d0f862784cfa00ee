import { Context } from '@temporalio/activity';
import type { RunAttributes } from '../domain/dispatch/tasks.ts';
import { jobLog, type Log } from '../platform/log.ts';
import { asJobFailure } from '../services/backups/archives.ts';
import type { BackupRunSteps } from '../services/backups/backupRun.ts';
import type { BackupCompletion } from '../services/backups/backupCompletion.ts';
import type { RestoreCompletion } from '../services/backups/restoreCompletion.ts';
import type { ApplyRestore } from '../services/backups/applyRestore.ts';
import type { RestoreRunSteps } from '../services/backups/restoreRun.ts';
import type { PreRestoreBackup } from '../services/backups/preRestoreBackup.ts';
import type { MultiStepJobs, StepTools } from '../services/jobs/multiStep.ts';
import { attemptSignal, toTemporalFailure } from './jobs.ts';
import { startHeartbeat, withHeartbeat } from './heartbeat.ts';
import { sanitizeErrors } from './sanitizeErrors.ts';

export type BackupActivities = ReturnType<typeof createBackupActivities>;

type Deps = {
  steps: MultiStepJobs;
  backupRun: BackupRunSteps;
  backupCompletion: BackupCompletion;
  restoreRun: RestoreRunSteps;
  applyRestore: ApplyRestore;
  restoreCompletion: RestoreCompletion;
  preRestoreBackup: PreRestoreBackup;
  log: Log;
};

/** The child workflow that makes the backup before a restore. */
export type PreRestoreBackupRun = {
  backupId: string;
  workflowId: string;
  attributes: RunAttributes;
};

/**
 * The failed attempts of a step that its retry policy counts. Temporal keeps the number from one attempt to
 * the next; its own number of the attempt also counts those that an outage has ended.
 */
const countedBefore = ({ info }: Context): number =>
  (info.heartbeatDetails as { counted?: number } | null | undefined)?.counted ?? 0;

export function createBackupActivities({
  steps,
  backupRun,
  backupCompletion,
  restoreRun,
  applyRestore,
  restoreCompletion,
  preRestoreBackup,
  log,
}: Deps) {
  /** Runs a long step with a heartbeat and the log of its job. */
  async function runStep<T>(jobId: string, action: (tools: StepTools) => Promise<T>): Promise<T> {
    const context = Context.current();
    let counted = countedBefore(context);
    const stopHeartbeat = startHeartbeat(context, () => ({ counted }));
    const onCounted = (failures: number) => context.heartbeat({ counted: (counted = failures) });
    try {
      return await steps.runStep(
        { jobId, failures: counted, onCounted, signal: attemptSignal() },
        (tools) =>
          action(tools).catch((error: unknown) => {
            throw asJobFailure(error);
          }),
      );
    } catch (error) {
      throw toTemporalFailure(error, jobLog(log, jobId));
    } finally {
      stopHeartbeat();
    }
  }

  return {
    snapshotBackup: (backupId: string, jobId: string): Promise<void> =>
      runStep(jobId, (tools) => backupRun.snapshot(backupId, tools)),
    finalizeArchive: (backupId: string, jobId: string): Promise<void> =>
      runStep(jobId, (tools) => backupRun.finalize(backupId, tools)),
    verifyArchive: (backupId: string, jobId: string): Promise<void> =>
      runStep(jobId, (tools) => backupRun.verify(backupId, tools)),
    completeBackup: (backupId: string): Promise<void> =>
      sanitizeErrors(log, () => backupCompletion.complete(backupId)),
    pruneBackups: (backupId: string, jobId: string): Promise<void> =>
      runStep(jobId, (tools) => backupCompletion.prune(backupId, tools)),
    failBackup: (backupId: string, code: string): Promise<void> =>
      withHeartbeat(log, () => backupCompletion.fail(backupId, code)),
    removeArchive: (backupId: string): Promise<void> =>
      withHeartbeat(log, () => backupCompletion.remove(backupId)),

    loadArchive: (jobId: string): Promise<void> =>
      runStep(jobId, (tools) => restoreRun.load(tools)),
    compareRecords: (jobId: string): Promise<void> =>
      runStep(jobId, (tools) => restoreRun.compare(tools)),
    recordRestoreTest: (jobId: string): Promise<void> =>
      runStep(jobId, (tools) => restoreCompletion.recordRestoreTest(tools)),
    createPreRestoreBackup: (jobId: string): Promise<PreRestoreBackupRun | null> =>
      runStep(jobId, (tools) => preRestoreBackup(tools)),
    applyRestore: (jobId: string): Promise<void> => runStep(jobId, (tools) => applyRestore(tools)),
    failRestore: (jobId: string, code: string): Promise<void> =>
      withHeartbeat(log, () => restoreCompletion.fail(jobId, code)),
    dropStaging: (jobId: string): Promise<void> =>
      withHeartbeat(log, () => restoreCompletion.dropStaging(jobId)),
  };
}
