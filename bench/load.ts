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
