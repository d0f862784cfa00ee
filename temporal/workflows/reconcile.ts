import { proxyActivities, workflowInfo } from '@temporalio/workflow';
import type { ReconcileActivities } from '../../activities/reconcile.ts';
import { activityTaskQueue } from '../../domain/dispatch/workflowIds.ts';

/**
 * Repairs records whose workflows are missing or closed, and deletes expired rows. A Temporal
 * Schedule of the system starts it.
 */
export async function reconcile(): Promise<void> {
  const { reconcileJobs, reconcileApprovals, reconcileBackups, purgeExpired } =
    proxyActivities<ReconcileActivities>({
      taskQueue: activityTaskQueue(workflowInfo().taskQueue),
      startToCloseTimeout: '5 minutes',
      heartbeatTimeout: '30 seconds',
      retry: { maximumAttempts: 3 },
    });
  await reconcileJobs();
  await reconcileApprovals();
  await reconcileBackups();
  await purgeExpired();
}
