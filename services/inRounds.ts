import { withOutboxRow } from '../db/jobs/jobs.ts';
import type { Knex } from '../db/core/knex.ts';
import type { Log } from '../platform/log.ts';
import { inTurns } from './inTurns.ts';

/** Records taken at once. */
const BATCH = 200;

type Round<T> = {
  /** What is done, for the log. */
  name: string;
  /** Takes up to `limit` records that nobody has looked at for a while. */
  take(limit: number): Promise<T[]>;
  workflowIdOf(record: T): string;
  /** Puts a record right; true when there was something to do. One that is `owed` has a call to Temporal before it. */
  look(record: T, owed: boolean): Promise<boolean>;
};

/** Looks at all records that are due, batch by batch, until `signal` aborts. Returns how many were put right. */
export async function inRounds<T>(
  { db, log }: { db: Knex; log: Log },
  signal: AbortSignal,
  { name, take, workflowIdOf, look }: Round<T>,
): Promise<number> {
  let repaired = 0;
  for (let full = true; full && !signal.aborted;) {
    const taken = await take(BATCH);
    const owed = await withOutboxRow(db, taken.map(workflowIdOf));
    repaired += await inTurns(log, signal, name, taken, (record) =>
      look(record, owed.has(workflowIdOf(record))),
    );
    full = taken.length === BATCH;
  }
  return repaired;
}
