import { within } from '../within.ts';

/**
 * Asks one question at a time and waits at most `limitMs` for its answer; undefined if there is none
 * in time. The metrics that it is for keep their last value then, and the others are still answered.
 */
export function askWithin<T>(
  limitMs: number,
  read: () => Promise<T>,
): () => Promise<T | undefined> {
  let asking: Promise<T | undefined> | undefined;
  return () => {
    asking ??= read()
      .catch(() => undefined)
      .finally(() => (asking = undefined));
    return within(limitMs, asking);
  };
}
