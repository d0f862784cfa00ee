import type { Log } from './log.ts';

/** A function that is called repeatedly in the background. */
export type Loop = {
  /** Starts the next round immediately, or directly after the running one. */
  wake(): void;
  /** Starts no further round. Resolves when the running one has ended. */
  stop(): Promise<void>;
};

/**
 * `minIntervalMs`: minimum time between the starts of two rounds that find no more work. A function returns it
 * after each round, for loops whose rounds need gather work only where there is much of it.
 */
type LoopOptions = {
  name: string;
  everyMs: number;
  minIntervalMs?: number | (() => number);
  log: Log;
};

/**
 * Calls `round` repeatedly. The pause until the next round depends on the result: none for true
 * (there is more work), `everyMs` for false, else that number of milliseconds. A failed round is
 * logged.
 */
export function startLoop(
  { name, everyMs, minIntervalMs = 0, log }: LoopOptions,
  round: () => Promise<boolean | number>,
): Loop {
  let stopped = false;
  let woken = false;
  let inCooldown = false;
  let interruptPause: (() => void) | undefined;

  const pause = (ms: number) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      interruptPause = () => {
        clearTimeout(timer);
        resolve();
      };
    });

  async function run() {
    while (!stopped) {
      woken = false;
      const startedAt = performance.now();
      const result = await round().catch((error: unknown) => {
        log.warn({ err: error, loop: name }, 'a background round failed and will be repeated');
        return false;
      });
      if (stopped || result === true) continue;
      const intervalMs = typeof minIntervalMs === 'number' ? minIntervalMs : minIntervalMs();
      const remainingMs = intervalMs - (performance.now() - startedAt);
      inCooldown = remainingMs > 0;
      if (inCooldown) await pause(remainingMs);
      inCooldown = false;
      if (!stopped && !woken) await pause(result === false ? everyMs : result);
    }
  }

  const ended = run();
  const wake = () => {
    woken = true;
    if (!inCooldown) interruptPause?.();
  };
  return {
    wake,
    stop() {
      stopped = true;
      interruptPause?.();
      return ended;
    },
  };
}
