import { proxyActivities, workflowInfo } from '@temporalio/workflow';
import type { ReconcileActivities } from '../../activities/reconcile.ts';
import { tryEach } from '../../domain/shared/runEach.ts';
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
  const { failures } = await tryEach<unknown>([
    reconcileJobs,
    reconcileApprovals,
    reconcileBackups,
    purgeExpired,
  ]);
  // Only a failure of Temporal fails the run. Each is in its history.
  if (failures.length > 0) throw failures[0];
}
