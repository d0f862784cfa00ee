import type { Changes } from '../db/core/notifications.ts';

/** A notification can be lost with its connection; after this long whoever waits looks for itself. */
const LOOK_AGAIN_MS = 2_000;

/**
 * Arms a wait for `topic` before the caller looks at the database, so that a change between the look and the
 * wait is not missed. Dispose it in any case (`using`).
 */
export function waitForChange(changes: Changes, topic: string) {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const off = changes.on(topic, () => resolve(true));
  return {
    /** Waits for the first change, at most `ms` or two seconds, or until `signal` aborts. True: there was one. */
    async within(ms: number, signal: AbortSignal): Promise<boolean> {
      const giveUp = () => resolve(false);
      const timer = setTimeout(giveUp, Math.min(ms, LOOK_AGAIN_MS));
      signal.addEventListener('abort', giveUp, { once: true });
      const changed = await promise;
      clearTimeout(timer);
      signal.removeEventListener('abort', giveUp);
      return changed;
    },
    [Symbol.dispose]: off,
  };
}
