import type { Log } from '../../platform/log.ts';

/** Tasks that run together. */
const CONCURRENCY = 10;

/**
 * Runs `task` for each item, ten concurrently, until `signal` aborts. A failure is logged with
 * `operation`, and the item is left to a later round. Returns the number of tasks that resolved
 * with true.
 */
export async function mapConcurrently<T>(
  log: Log,
  signal: AbortSignal,
  operation: string,
  items: readonly T[],
  task: (item: T) => Promise<boolean>,
): Promise<number> {
  let succeeded = 0;
  for (let start = 0; start < items.length && !signal.aborted; start += CONCURRENCY) {
    for (const result of await Promise.allSettled(
      items.slice(start, start + CONCURRENCY).map(task),
    )) {
      if (result.status === 'rejected')
        log.warn({ err: result.reason as unknown }, `${operation} failed and will be retried`);
      else if (result.value) succeeded += 1;
    }
  }
  return succeeded;
}
