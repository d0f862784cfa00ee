import type { Log } from '../../platform/log.ts';
import { mapConcurrently } from './mapConcurrently.ts';

/** Records that one query finds. */
const BATCH = 200;

type DueWork<T> = {
  /** The operation, for log lines. */
  name: string;
  /** Up to `limit` records that are due, chosen at random: those that always fail keep no other from its turn. */
  find(limit: number): Promise<T[]>;
  /** True when the record was due and is not any more. */
  apply(record: T): Promise<boolean>;
};

/**
 * Applies what is due to all records, in batches, until `signal` aborts. A record that fails is logged and left to
 * a later round.
 */
export async function forEachDue<T>(
  log: Log,
  signal: AbortSignal,
  { name, find, apply }: DueWork<T>,
): Promise<void> {
  for (let hasMore = true; hasMore && !signal.aborted;) {
    const due = await find(BATCH);
    const applied = await mapConcurrently(log, signal, name, due, apply);
    hasMore = due.length === BATCH && applied > 0;
  }
}
