import type { Log } from '../platform/log.ts';
import type { Reconcile } from '../services/reconcile.ts';
import { beating } from './withoutData.ts';

export type ReconcileActivities = ReturnType<typeof createReconcileActivities>;

export const createReconcileActivities = ({ reconcile, log }: { reconcile: Reconcile; log: Log }) => ({
  reconcileJobs: (): Promise<number> => beating(log, (signal) => reconcile.jobs(signal)),
  purgeExpired: (): Promise<void> => beating(log, (signal) => reconcile.purge(signal)),
});
