import type { Knex } from './knex.ts';
import { prepared } from './prepared.ts';

/**
 * Runs `work` in an open transaction. When `signal` is aborted, the statement that runs is cancelled, and the
 * reason of the signal is thrown: the transaction must be rolled back. Between two statements nothing can
 * be cancelled: `work` checks the signal before each one that may take long.
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
 * Cancels what a transaction executes. The empty statement after it takes a cancellation that arrives late, so
 * that none meets the next user of the connection. It is no error, also if the transaction has failed.
 */
async function cancelStatement(db: Knex, trx: Knex, pid: number): Promise<void> {
  await db.raw('SELECT pg_cancel_backend(?)', [pid]).catch(() => undefined);
  await trx.raw(';').catch(() => undefined);
}
