import type { Log } from './log.ts';

/** A round that is repeated until it is stopped. */
export type Loop = {
  /** Begins the next round now, or right after the one that runs. */
  wake(): void;
  /** Resolves when the round that runs has ended; none follows. */
  stop(): Promise<void>;
};

/** `atLeastMs`: from the begin of a round that found nothing more to the next, however often it is woken. */
type Options = { name: string; everyMs: number; atLeastMs?: number; log: Log };

/**
 * Runs `round` again and again, `everyMs` apart, sooner when it returns how many milliseconds to wait, or at once while
 * it returns true ("there is more"). A failed round is logged and waits like any other.
 */
export function startLoop(
  { name, everyMs, atLeastMs = 0, log }: Options,
  round: () => Promise<boolean | number>,
): Loop {
  let stopped = false;
  let woken = false;
  let resting = false;
  let endPause: (() => void) | undefined;

  const pause = (ms: number) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      endPause = () => {
        clearTimeout(timer);
        resolve();
      };
    });

  async function run() {
    while (!stopped) {
      woken = false;
      const began = performance.now();
      const more = await round().catch((error: unknown) => {
        log.warn({ err: error, loop: name }, 'a background round failed and will be repeated');
        return false;
      });
      if (stopped || more === true) continue;
      const leftMs = atLeastMs - (performance.now() - began);
      resting = leftMs > 0;
      if (resting) await pause(leftMs);
      resting = false;
      if (!stopped && !woken) await pause(more === false ? everyMs : more);
    }
  }

  const ended = run();
  const wake = () => {
    woken = true;
    if (!resting) endPause?.();
  };
  return {
    wake,
    stop() {
      stopped = true;
      endPause?.();
      return ended;
    },
  };
}
