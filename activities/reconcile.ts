import type { Log } from '../platform/log.ts';
import type { ApprovalReconcile } from '../services/approvals/reconcile.ts';
import type { BackupReconcile } from '../services/backups/reconcile.ts';
import type { Reconcile } from '../services/jobs/reconcile.ts';
import type { Housekeeping } from '../services/operations/housekeeping.ts';
import { withHeartbeat } from './heartbeat.ts';

export type ReconcileActivities = ReturnType<typeof createReconcileActivities>;

export const createReconcileActivities = ({
  reconcile,
  approvals,
  backups,
  housekeeping,
  log,
}: {
  reconcile: Reconcile;
  approvals: ApprovalReconcile;
  backups: BackupReconcile;
  housekeeping: Housekeeping;
  log: Log;
}) => ({
  reconcileJobs: (): Promise<number> =>
    withHeartbeat(log, (signal) => reconcile.reconcileJobs(signal)),
  reconcileApprovals: (): Promise<number> => withHeartbeat(log, (signal) => approvals(signal)),
  reconcileBackups: (): Promise<number> => withHeartbeat(log, (signal) => backups(signal)),
  purgeExpired: (): Promise<void> => withHeartbeat(log, (signal) => housekeeping.run(signal)),
});
