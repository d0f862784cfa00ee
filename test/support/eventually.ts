import { setTimeout as sleep } from 'node:timers/promises';

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
  const deadline = Date.now() + withinMs;
  for (;;) {
    const value = await read();
    if (isEnough(value)) return value;
    if (Date.now() > deadline)
      throw new Error(`Not within ${withinMs} ms; last: ${JSON.stringify(value)?.slice(0, 2_000)}`);
    await sleep(20);
  }
}
