import type { Knex } from './knex.ts';
import { cancelOnAbort } from './cancelOnAbort.ts';
import { prepared } from './prepared.ts';

/**
 * Runs `read` in a read-only transaction with a stable snapshot. When `signal` is aborted, the
 * statement that runs is cancelled. No statement may take longer than `timeoutMs`.
 */
export async function readSnapshot<T>(
  db: Knex,
  { signal, timeoutMs }: { signal: AbortSignal; timeoutMs: number },
  read: (trx: Knex.Transaction) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const trx = await db.transaction(undefined, {
    isolationLevel: 'repeatable read',
    readOnly: true,
  });
  try {
    await prepared(trx, "SELECT set_config('statement_timeout', ?, true)", [String(timeoutMs)], {
      waits: true,
    });
    const result = await cancelOnAbort(db, trx, signal, () => read(trx));
    // A rollback would take back what `use_indexes` notes on the connection, and each question would drop its plans.
    await trx.commit();
    return result;
  } catch (error) {
    // It must not replace the error of `read`.
    await trx.rollback().catch(() => undefined);
    throw error;
  }
}
