import type { Knex } from './knex.ts';
import { prepared } from './prepared.ts';

/**
 * Runs `read` in a read-only transaction with a stable snapshot. When `signal` is aborted, the
 * statement that runs is cancelled. No statement may take longer than `timeoutMs`.
 */
export async function readSnapshot<T>(
  db: Knex,
  { signal, timeoutMs }: { signal: AbortSignal; timeoutMs: number },
  read: (trx: Knex) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const trx = await db.transaction(undefined, {
    isolationLevel: 'repeatable read',
    readOnly: true,
  });
  let cancelled: Promise<void> | undefined;
  const cancel = () => void (cancelled ??= cancelStatement(db, trx, pid));
  let pid = 0;
  try {
    const { rows } = (await prepared(
      trx,
      "SELECT pg_backend_pid() AS pid, set_config('statement_timeout', ?, true)",
      [String(timeoutMs)],
    )) as { rows: { pid: number }[] };
    pid = rows[0]?.pid ?? 0;
    signal.addEventListener('abort', cancel, { once: true });
    signal.throwIfAborted();
    return await read(trx);
  } finally {
    signal.removeEventListener('abort', cancel);
    await cancelled;
    // It must not replace the error of `read`.
    await trx.rollback().catch(() => undefined);
  }
}

/**
 * Cancels what a transaction executes. The statement after it takes a cancellation that arrives
 * late, so that none meets the next user of the connection.
 */
async function cancelStatement(db: Knex, trx: Knex, pid: number): Promise<void> {
  await db.raw('SELECT pg_cancel_backend(?)', [pid]).then(
    () => trx.raw('SELECT 1').catch(() => undefined),
    () => undefined,
  );
}
