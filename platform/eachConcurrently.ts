/**
 * Runs `task` for each item, for at most `limit` of them concurrently, as long as `mayContinue`. `items` keeps those
 * that were not started. When a task fails, the others go on; the first error is thrown when all have ended.
 */
export async function eachConcurrently<T>(
  items: Iterator<T>,
  limit: number,
  task: (item: T) => Promise<void>,
  mayContinue: () => boolean,
): Promise<void> {
  const runNext = async () => {
    while (mayContinue()) {
      const next = items.next();
      if (next.done === true) return;
      await task(next.value);
    }
  };
  const ended = await Promise.allSettled(Array.from({ length: limit }, runNext));
  for (const each of ended) if (each.status === 'rejected') throw each.reason;
}
