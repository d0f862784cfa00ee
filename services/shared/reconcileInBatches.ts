import { withPendingTask } from '../../db/core/outbox.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { Log } from '../../platform/log.ts';
import { mapConcurrently } from './mapConcurrently.ts';

/** Records that one query claims. */
const BATCH = 200;

type ReconcileBatches<T> = {
  /** The operation, for log lines. */
  name: string;
  /** Claims up to `limit` records that are due for a check. */
  claimBatch(limit: number): Promise<T[]>;
  workflowIdOf(record: T): string;
  /**
   * Repairs a record; true when a repair was needed. With `hasPendingTask`, the outbox still has a
   * task for its workflow.
   */
  repair(record: T, hasPendingTask: boolean): Promise<boolean>;
};

/**
 * Checks all records that are due, in batches, until `signal` aborts. Returns the number of
 * repairs.
 */
export async function reconcileInBatches<T>(
  { db, log }: { db: Knex; log: Log },
  signal: AbortSignal,
  { name, claimBatch, workflowIdOf, repair }: ReconcileBatches<T>,
): Promise<number> {
  let repaired = 0;
  for (let more = true; more && !signal.aborted;) {
    const batch = await claimBatch(BATCH);
    const pending = await withPendingTask(db, batch.map(workflowIdOf));
    repaired += await mapConcurrently(log, signal, name, batch, (record) =>
      repair(record, pending.has(workflowIdOf(record))),
    );
    more = batch.length === BATCH;
  }
  return repaired;
}
