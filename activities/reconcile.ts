import type { Reconcile } from '../services/reconcile.ts';

export type ReconcileActivities = ReturnType<typeof createReconcileActivities>;

export const createReconcileActivities = ({ reconcile }: { reconcile: Reconcile }) => ({
  reconcileJobs: async (): Promise<number> => reconcile.jobs(),
  purgeExpired: async (): Promise<void> => reconcile.purge(),
});
