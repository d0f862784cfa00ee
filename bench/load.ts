import { setTimeout as sleep } from 'node:timers/promises';

/** Durations of the calls, and calls per second. */
export type LoadResult = { durationsMs: number[]; perSecond: number };

/** Calls `call` `total` times, `concurrency` times concurrently. */
export async function load(
  { concurrency, total }: { concurrency: number; total: number },
  call: (n: number) => Promise<unknown>,
): Promise<LoadResult> {
  const durationsMs: number[] = [];
  let next = 0;
  const startedAt = performance.now();
  const runLane = async () => {
    while (next < total) {
      const n = next++;
      const callStartedAt = performance.now();
      await call(n);
      durationsMs.push(performance.now() - callStartedAt);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, runLane));
  return { durationsMs, perSecond: total / ((performance.now() - startedAt) / 1_000) };
}

/**
 * Calls `call` `total` times at a fixed rate, whether earlier calls have ended or not (open loop).
 * Durations count from the time at which a call was due, so a late start counts too.
 */
export async function offer(
  { perSecond, total }: { perSecond: number; total: number },
  call: (n: number) => Promise<unknown>,
): Promise<LoadResult> {
  const startedAt = performance.now();
  const callWhenDue = async (n: number) => {
    const dueAt = startedAt + (n * 1_000) / perSecond;
    await sleep(Math.max(0, dueAt - performance.now()));
    await call(n);
    return performance.now() - dueAt;
  };
  const durationsMs = await Promise.all(Array.from({ length: total }, (_, n) => callWhenDue(n)));
  return { durationsMs, perSecond: total / ((performance.now() - startedAt) / 1_000) };
}
