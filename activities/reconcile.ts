import { Context } from '@temporalio/activity';
import type { Log } from '../platform/log.ts';
import type { Reconcile } from '../services/reconcile.ts';
import { withoutData } from './withoutData.ts';

export type ReconcileActivities = ReturnType<typeof createReconcileActivities>;

/** Well within the heartbeat limit that the workflow sets. */
const BEAT_MS = 5_000;

export function createReconcileActivities({ reconcile, log }: { reconcile: Reconcile; log: Log }) {
  async function beating<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const context = Context.current();
    const beat = setInterval(() => context.heartbeat(), BEAT_MS);
    try {
      return await withoutData(log, () => work(context.cancellationSignal));
    } finally {
      clearInterval(beat);
    }
  }

  return {
    reconcileJobs: (): Promise<number> => beating((signal) => reconcile.jobs(signal)),
    purgeExpired: (): Promise<void> => beating((signal) => reconcile.purge(signal)),
  };
}
