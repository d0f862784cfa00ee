import { patched, proxyActivities, workflowInfo } from '@temporalio/workflow';
import type { ReconcileActivities } from '../../activities/reconcile.ts';
import { activityQueueOf } from '../contracts.ts';

/** Keeps records and runs in step; started by a schedule of the system's own. */
export async function reconcile(): Promise<void> {
  const { reconcileJobs, reconcileApprovals, reconcileBackups, purgeExpired } =
    proxyActivities<ReconcileActivities>({
      taskQueue: activityQueueOf(workflowInfo().taskQueue),
      startToCloseTimeout: '5 minutes',
      heartbeatTimeout: '30 seconds',
      retry: { maximumAttempts: 3 },
    });
  await reconcileJobs();
  // Rounds that began before there were requests, or backups, go on without them.
  if (patched('approvals')) await reconcileApprovals();
  if (patched('backups')) await reconcileBackups();
  await purgeExpired();
}
