import type { Log } from '../platform/log.ts';

const AT_ONCE = 10;

/**
 * Does the same for many, some at once, until `signal` aborts. One that fails is logged as `what` and left to a later
 * round; it does not spoil the others. Returns for how many the step gave true.
 */
export async function inTurns<T>(
  log: Log,
  signal: AbortSignal,
  what: string,
  items: readonly T[],
  step: (item: T) => Promise<boolean>,
): Promise<number> {
  let done = 0;
  for (let at = 0; at < items.length && !signal.aborted; at += AT_ONCE) {
    for (const result of await Promise.allSettled(items.slice(at, at + AT_ONCE).map(step))) {
      if (result.status === 'rejected')
        log.warn({ err: result.reason as unknown }, `${what} failed and will be tried again`);
      else if (result.value) done += 1;
    }
  }
  return done;
}
