import { Context } from '@temporalio/activity';
import type { RunAttributes } from '../domain/dispatch/tasks.ts';
import { JobFailure } from '../domain/jobs/jobType.ts';
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
import {
  lostBefore,
  startHeartbeat,
  withHeartbeat,
  withLimitedAttempts,
  type AttemptHistory,
} from './heartbeat.ts';
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
 * What Temporal keeps of a step from one attempt to the next. `counted`: the failed attempts that its retry policy
 * counts; the number of Temporal also counts those that an outage has ended.
 */
type StepHistory = AttemptHistory & { counted: number };

/** The history of a step when an attempt begins. */
function historyBefore({ info }: Context): StepHistory {
  const { counted = 0 } = (info.heartbeatDetails ?? {}) as Partial<StepHistory>;
  return { counted, lost: lostBefore(info), isRunning: true };
}

/** An attempt ends itself this long before Temporal would repeat it without a word. */
const TIME_TO_END_MS = 30_000;

/** Aborts with the activity, and with `timed_out` before its time limit. */
function limitedSignal({ info }: Context): { signal: AbortSignal; clear(): void } {
  const limitMs = info.startToCloseTimeoutMs;
  const limit = new AbortController();
  const timer = setTimeout(
    () => limit.abort(new JobFailure('timed_out', `The step took longer than ${limitMs} ms`)),
    limitMs - Math.min(TIME_TO_END_MS, limitMs / 10),
  );
  return {
    signal: AbortSignal.any([attemptSignal(), limit.signal]),
    clear: () => clearTimeout(timer),
  };
}

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
    let history = historyBefore(context);
    const record = (change: Partial<StepHistory>) =>
      context.heartbeat((history = { ...history, ...change }));
    record({});
    const stopHeartbeat = startHeartbeat(context, () => history);
    const { counted, lost } = history;
    const { signal, clear } = limitedSignal(context);
    const onCounted = (failures: number) => record({ counted: failures });
    try {
      return await steps.runStep({ jobId, failures: counted, lost, onCounted, signal }, (tools) =>
        action(tools).catch((error: unknown) => {
          throw asJobFailure(error);
        }),
      );
    } catch (error) {
      record({ isRunning: false });
      throw toTemporalFailure(error, jobLog(log, jobId));
    } finally {
      clear();
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
      withLimitedAttempts(log, {
        run: () => backupCompletion.remove(backupId),
        fail: (error) => backupCompletion.failRemoval(backupId, error),
      }),

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
