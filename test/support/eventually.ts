import { setTimeout as sleep } from 'node:timers/promises';

/** The pauses grow with the time that has passed: many tests wait at the same time, and each read is work. */
const PAUSE_SHARE = 0.2;
const MIN_PAUSE_MS = 20;
const MAX_PAUSE_MS = 300;

/**
 * Calls `read` until `isEnough` accepts its value. Fails after `withinMs` and shows the last value.
 */
export async function eventually<T, Enough extends T>(
  read: () => Promise<T> | T,
  isEnough: (value: T) => value is Enough,
  limit?: { withinMs?: number },
): Promise<Enough>;
export async function eventually<T>(
  read: () => Promise<T> | T,
  isEnough: (value: T) => boolean,
  limit?: { withinMs?: number },
): Promise<T>;
export async function eventually<T>(
  read: () => Promise<T> | T,
  isEnough: (value: T) => boolean,
  { withinMs = 20_000 } = {},
): Promise<T> {
  const startedAt = Date.now();
  for (;;) {
    const value = await read();
    if (isEnough(value)) return value;
    const waitedMs = Date.now() - startedAt;
    if (waitedMs > withinMs)
      throw new Error(`Not within ${withinMs} ms; last: ${JSON.stringify(value)?.slice(0, 2_000)}`);
    await sleep(Math.min(Math.max(waitedMs * PAUSE_SHARE, MIN_PAUSE_MS), MAX_PAUSE_MS));
  }
}
