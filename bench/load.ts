/** What a load run saw: how long each call took and how many were made a second. */
export type Load = { tookMs: number[]; perSecond: number };

/** Calls `once` from `atOnce` sides at the same time, `total` times in all. */
export async function load(
  { atOnce, total }: { atOnce: number; total: number },
  once: (n: number) => Promise<unknown>,
): Promise<Load> {
  const tookMs: number[] = [];
  let next = 0;
  const began = performance.now();
  const side = async () => {
    while (next < total) {
      const n = next++;
      const at = performance.now();
      await once(n);
      tookMs.push(performance.now() - at);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, side));
  return { tookMs, perSecond: total / ((performance.now() - began) / 1_000) };
}
