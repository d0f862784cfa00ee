import type { Log } from '../platform/log.ts';
import type { ApprovalReconcile } from '../services/approvalReconcile.ts';
import type { BackupReconcile } from '../services/backups/reconcile.ts';
import type { Reconcile } from '../services/jobs/reconcile.ts';
import { beating } from './withoutData.ts';

export type ReconcileActivities = ReturnType<typeof createReconcileActivities>;

export const createReconcileActivities = ({
  reconcile,
  approvals,
  backups,
  log,
}: {
  reconcile: Reconcile;
  approvals: ApprovalReconcile;
  backups: BackupReconcile;
  log: Log;
}) => ({
  reconcileJobs: (): Promise<number> => beating(log, (signal) => reconcile.jobs(signal)),
  reconcileApprovals: (): Promise<number> => beating(log, (signal) => approvals(signal)),
  reconcileBackups: (): Promise<number> => beating(log, (signal) => backups(signal)),
  purgeExpired: (): Promise<void> => beating(log, (signal) => reconcile.purge(signal)),
});
