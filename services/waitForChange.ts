import type { Changes } from '../db/changes.ts';

/** A notification can be lost with its connection; after this long whoever waits looks for itself. */
const LOOK_AGAIN_MS = 1_000;

/**
 * Arms a wait for `topic` before the caller looks at the database, so that a change between the look and the
 * wait is not missed. Dispose it in any case (`using`).
 */
export function waitForChange(changes: Changes, topic: string) {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const wake = () => resolve(undefined);
  const off = changes.on(topic, wake);
  return {
    /** Resolves at the first change, after `ms` or a second, whichever is less, or when `signal` aborts. */
    async within(ms: number, signal: AbortSignal): Promise<void> {
      const timer = setTimeout(wake, Math.min(ms, LOOK_AGAIN_MS));
      signal.addEventListener('abort', wake, { once: true });
      await promise;
      clearTimeout(timer);
      signal.removeEventListener('abort', wake);
    },
    [Symbol.dispose]: off,
  };
}
