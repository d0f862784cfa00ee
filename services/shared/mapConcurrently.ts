import { eachConcurrently } from '../../platform/eachConcurrently.ts';
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
  const tryTask = async (item: T) => {
    try {
      if (await task(item)) succeeded += 1;
    } catch (error) {
      log.warn({ err: error }, `${operation} failed and will be retried`);
    }
  };
  await eachConcurrently(items.values(), CONCURRENCY, tryTask, () => !signal.aborted);
  return succeeded;
}
