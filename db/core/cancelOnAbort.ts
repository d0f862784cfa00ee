import type { Knex } from './knex.ts';
import { prepared } from './prepared.ts';

/**
 * Runs `work` in an open transaction. When `signal` is aborted, the statement that runs is cancelled, all
 * later ones fail, and the reason of the signal is thrown: the transaction must be rolled back.
 */
export async function cancelOnAbort<T>(
  db: Knex,
  trx: Knex,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const { rows } = await prepared<{ pid: number }>(trx, 'SELECT pg_backend_pid() AS pid', []);
  let cancelled: Promise<void> | undefined;
  const cancel = () => void (cancelled ??= cancelStatement(db, trx, rows[0]?.pid ?? 0));
  signal.addEventListener('abort', cancel, { once: true });
  try {
    signal.throwIfAborted();
    const result = await work();
    signal.throwIfAborted();
    return result;
  } catch (error) {
    if (cancelled) signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener('abort', cancel);
    await cancelled;
  }
}

/**
 * Cancels what a transaction executes. The statement after it takes a cancellation that arrives late, so
 * that none meets the next user of the connection, and fails, so that the transaction ends also if it was
 * between two statements.
 */
async function cancelStatement(db: Knex, trx: Knex, pid: number): Promise<void> {
  await db.raw('SELECT pg_cancel_backend(?)', [pid]).catch(() => undefined);
  await trx.raw('SELECT 1 / 0').catch(() => undefined);
}
