import { setTimeout as sleep } from 'node:timers/promises';

/** Waits until `look` gives something that `isEnough`; fails with what it gave last. */
export async function eventually<T>(
  look: () => Promise<T> | T,
  isEnough: (value: T) => boolean,
  { withinMs = 20_000 } = {},
): Promise<T> {
  const until = Date.now() + withinMs;
  for (;;) {
    const value = await look();
    if (isEnough(value)) return value;
    if (Date.now() > until)
      throw new Error(`Not within ${withinMs} ms; last: ${JSON.stringify(value)?.slice(0, 2_000)}`);
    await sleep(20);
  }
}
