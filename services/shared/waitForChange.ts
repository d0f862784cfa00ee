import type { Notifications } from '../../db/core/notifications.ts';

/** Notifications can be lost with their connection, so waiters check the database this often. */
const RECHECK_MS = 2_000;

/**
 * Subscribes to `topic`. Call it before reading the database: a change between the read and `wait`
 * is then not missed. The caller must dispose the result (`using`).
 */
export function waitForChange(changes: Notifications, topic: string) {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const unsubscribe = changes.on(topic, () => resolve(true));
  return {
    /**
     * Waits for a change, at most `ms` and two seconds, or until `signal` aborts. True: it changed.
     */
    async wait(ms: number, signal: AbortSignal): Promise<boolean> {
      const onTimeout = () => resolve(false);
      const timer = setTimeout(onTimeout, Math.min(ms, RECHECK_MS));
      signal.addEventListener('abort', onTimeout, { once: true });
      const changed = await promise;
      clearTimeout(timer);
      signal.removeEventListener('abort', onTimeout);
      return changed;
    },
    [Symbol.dispose]: unsubscribe,
  };
}
