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
  TimeoutFailure,
  workflowInfo,
} from '@temporalio/workflow';
import type { BackupActivities } from '../../activities/backups.ts';
import {
  activityQueueOf,
  type BackupStart,
  type RemoveStart,
  type RestoreStart,
  type StepLimits,
} from '../contracts.ts';
import { attributesOf } from './attributes.ts';
import { STEP } from './shared/stepOptions.ts';

/** Attempts are counted by the policy of the job; a worker or a database that is away is no failure of the step. */
const retry = {
  initialInterval: '1 second',
  backoffCoefficient: 2,
  maximumInterval: '1 minute',
} as const;

const CLEAN_UP_HEARTBEAT = '10 seconds';

const { completeBackup } = proxyLocalActivities<BackupActivities>(STEP);

const steps = ({ timeoutMs, heartbeatMs }: StepLimits) =>
  proxyActivities<BackupActivities>({
    taskQueue: activityQueueOf(workflowInfo().taskQueue),
    startToCloseTimeout: timeoutMs,
    heartbeatTimeout: heartbeatMs,
    retry,
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  });

/** What is left is cleaned up for so long; after that the reconciler does it, and the end is what it is. */
const cleanUp = () =>
  proxyActivities<BackupActivities>({
    taskQueue: activityQueueOf(workflowInfo().taskQueue),
    startToCloseTimeout: '5 minutes',
    heartbeatTimeout: CLEAN_UP_HEARTBEAT,
    retry: { ...retry, maximumAttempts: 10 },
  });

/** Makes an archive: what is read at one moment is written, made an archive, read again, and then counts. */
export async function backup({ backupId, jobId, ...limits }: BackupStart): Promise<void> {
  const { snapshotBackup, sealBackup, verifyArchive, pruneBackups } = steps(limits);
  try {
    setCurrentDetails('Reading and writing the snapshot');
    await snapshotBackup(backupId, jobId);
    setCurrentDetails('Sealing the archive');
    await sealBackup(backupId, jobId);
    setCurrentDetails('Reading the archive again');
    await verifyArchive(backupId, jobId);
    await CancellationScope.nonCancellable(() => completeBackup(backupId));
  } catch (failure) {
    await CancellationScope.nonCancellable(() =>
      cleanUp()
        .failBackup(backupId, codeOf(failure))
        .catch(() => undefined),
    );
    throw withCode(failure);
  }
  setCurrentDetails('Pruning older backups');
  // The backup is made; what is not pruned now is when the next one is.
  await pruneBackups(backupId, jobId).catch(() => undefined);
  setCurrentDetails('Completed');
}

/** Loads an archive beside the records, and does with it what it is loaded for. */
export async function restore({ jobId, purpose, ...limits }: RestoreStart): Promise<void> {
  const { loadArchive, compareRecords, proveArchive, prepareSafety, swapRecords } = steps(limits);
  try {
    setCurrentDetails('Reading and loading the archive');
    await loadArchive(jobId);
    if (purpose === 'verify') await proveArchive(jobId);
    else {
      setCurrentDetails('Comparing it with the records');
      await compareRecords(jobId);
    }
    if (purpose === 'restore') {
      const safety = await prepareSafety(jobId);
      if (safety) {
        setCurrentDetails('Backing up what is here now');
        await executeChild(backup, {
          workflowId: safety.workflowId,
          args: [{ backupId: safety.backupId, jobId, ...limits }],
          staticSummary: 'backup before a restore',
          typedSearchAttributes: attributesOf(safety.attributes),
          workflowIdReusePolicy: 'REJECT_DUPLICATE',
          parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
        });
      }
      setCurrentDetails('Swapping the records');
      await swapRecords(jobId);
    }
  } catch (failure) {
    await CancellationScope.nonCancellable(() =>
      cleanUp()
        .failRestore(jobId, codeOf(failure))
        .catch(() => undefined),
    );
    throw withCode(failure);
  } finally {
    await CancellationScope.nonCancellable(() =>
      cleanUp()
        .cleanRestore(jobId)
        .catch(() => undefined),
    );
  }
  setCurrentDetails('Completed');
}

/** Removes an archive, however long its store is away, and then says so. */
export async function removeBackup({ backupId }: RemoveStart): Promise<void> {
  const { removeArchive } = proxyActivities<BackupActivities>({
    taskQueue: activityQueueOf(workflowInfo().taskQueue),
    startToCloseTimeout: '5 minutes',
    heartbeatTimeout: CLEAN_UP_HEARTBEAT,
    retry: { ...retry, maximumInterval: '10 minutes' },
  });
  await removeArchive(backupId);
}

/** What a failure of a step, or of a run below this one, is called. */
function codeOf(failure: unknown): string {
  if (isCancellation(failure)) return 'cancelled';
  let cause = failure;
  while (cause instanceof ActivityFailure || cause instanceof ChildWorkflowFailure)
    ({ cause } = cause);
  if (cause instanceof TimeoutFailure) return 'timed_out';
  return (cause instanceof ApplicationFailure ? cause.type : undefined) ?? 'unexpected';
}

/** The run above reads the code only. */
const withCode = (failure: unknown): unknown =>
  isCancellation(failure)
    ? failure
    : ApplicationFailure.nonRetryable(`Failed: ${codeOf(failure)}`, codeOf(failure));
