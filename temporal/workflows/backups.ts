import {
  ActivityCancellationType,
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  ChildWorkflowFailure,
  executeChild,
  isCancellation,
  ParentClosePolicy,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  TerminatedFailure,
  TimeoutFailure,
  workflowInfo,
} from '@temporalio/workflow';
import type { BackupActivities } from '../../activities/backups.ts';
import {
  type BackupWorkflowInput,
  type RemoveBackupWorkflowInput,
  type RestoreWorkflowInput,
  type StepLimits,
} from '../../domain/dispatch/tasks.ts';
import { activityTaskQueue } from '../../domain/dispatch/workflowIds.ts';
import { toSearchAttributes } from './shared/searchAttributes.ts';
import { LOCAL_STEP_OPTIONS } from './shared/stepOptions.ts';

/**
 * The steps count failed attempts by the retry policy of the job. Temporal repeats a step without
 * limit when the database is unavailable, which does not count; how often it repeats one whose worker was lost, the
 * step counts.
 */
const retry = {
  initialInterval: '1 second',
  backoffCoefficient: 2,
  maximumInterval: '1 minute',
} as const;

const CLEAN_UP_HEARTBEAT = '10 seconds';

const { completeBackup } = proxyLocalActivities<BackupActivities>(LOCAL_STEP_OPTIONS);

const stepActivities = ({ timeoutMs, heartbeatMs }: StepLimits) =>
  proxyActivities<BackupActivities>({
    taskQueue: activityTaskQueue(workflowInfo().taskQueue),
    startToCloseTimeout: timeoutMs,
    heartbeatTimeout: heartbeatMs,
    retry,
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  });

/** Cleaning up is tried for a limited time; afterwards the reconciler does it. */
const cleanUpActivities = () =>
  proxyActivities<BackupActivities>({
    taskQueue: activityTaskQueue(workflowInfo().taskQueue),
    startToCloseTimeout: '5 minutes',
    heartbeatTimeout: CLEAN_UP_HEARTBEAT,
    retry: { ...retry, maximumAttempts: 10 },
  });

/** Makes a backup: write a snapshot, finalize the archive, read it again, mark it as completed. */
export async function backup({ backupId, jobId, ...limits }: BackupWorkflowInput): Promise<void> {
  const { snapshotBackup, finalizeArchive, verifyArchive, pruneBackups } = stepActivities(limits);
  try {
    setCurrentDetails('Reading and writing the snapshot');
    await snapshotBackup(backupId, jobId);
    setCurrentDetails('Finalizing the archive');
    await finalizeArchive(backupId, jobId);
    setCurrentDetails('Reading the archive again');
    await verifyArchive(backupId, jobId);
    await CancellationScope.nonCancellable(() => completeBackup(backupId));
  } catch (failure) {
    await CancellationScope.nonCancellable(() =>
      cleanUpActivities()
        .failBackup(backupId, failureCode(failure))
        .catch(() => undefined),
    );
    throw toWorkflowFailure(failure);
  }
  setCurrentDetails('Pruning older backups');
  // The backup is completed. The next run prunes what this one could not.
  await pruneBackups(backupId, jobId).catch(() => undefined);
  setCurrentDetails('Completed');
}

/** Loads an archive for a test restore, a validation or a restore. */
export async function restore({ jobId, purpose, ...limits }: RestoreWorkflowInput): Promise<void> {
  const { loadArchive, compareRecords, recordRestoreTest, createPreRestoreBackup, applyRestore } =
    stepActivities(limits);
  try {
    setCurrentDetails('Reading and loading the archive');
    await loadArchive(jobId);
    if (purpose === 'verify') await recordRestoreTest(jobId);
    else {
      setCurrentDetails('Comparing the archive with the current records');
      await compareRecords(jobId);
    }
    if (purpose === 'restore') {
      const preRestoreBackup = await createPreRestoreBackup(jobId);
      if (preRestoreBackup) {
        setCurrentDetails('Making the pre-restore backup');
        await executeChild(backup, {
          workflowId: preRestoreBackup.workflowId,
          args: [{ backupId: preRestoreBackup.backupId, jobId, ...limits }],
          staticSummary: 'pre-restore backup',
          typedSearchAttributes: toSearchAttributes(preRestoreBackup.attributes),
          workflowIdReusePolicy: 'REJECT_DUPLICATE',
          workflowTaskTimeout: workflowInfo().taskTimeoutMs,
          parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
        });
      }
      setCurrentDetails('Applying the restore');
      await applyRestore(jobId);
    }
  } catch (failure) {
    await CancellationScope.nonCancellable(() =>
      cleanUpActivities()
        .failRestore(jobId, failureCode(failure))
        .catch(() => undefined),
    );
    throw toWorkflowFailure(failure);
  } finally {
    await CancellationScope.nonCancellable(() =>
      cleanUpActivities()
        .dropStaging(jobId)
        .catch(() => undefined),
    );
  }
  setCurrentDetails('Completed');
}

/** Removes the archive of a deleted backup, however long its store is unavailable. */
export async function removeBackup({ backupId }: RemoveBackupWorkflowInput): Promise<void> {
  const { removeArchive } = proxyActivities<BackupActivities>({
    taskQueue: activityTaskQueue(workflowInfo().taskQueue),
    startToCloseTimeout: '5 minutes',
    heartbeatTimeout: CLEAN_UP_HEARTBEAT,
    retry: { ...retry, maximumInterval: '10 minutes' },
  });
  await removeArchive(backupId);
}

/** The error code of a failed step or child workflow. */
function failureCode(failure: unknown): string {
  if (isCancellation(failure)) return 'cancelled';
  let cause = failure;
  while (cause instanceof ActivityFailure || cause instanceof ChildWorkflowFailure)
    ({ cause } = cause);
  if (cause instanceof TimeoutFailure) return 'timed_out';
  if (cause instanceof TerminatedFailure) return 'workflow_terminated';
  return (cause instanceof ApplicationFailure ? cause.type : undefined) ?? 'unexpected';
}

/** The parent workflow reads only the error code. */
const toWorkflowFailure = (failure: unknown): unknown =>
  isCancellation(failure)
    ? failure
    : ApplicationFailure.nonRetryable(`Failed: ${failureCode(failure)}`, failureCode(failure));
