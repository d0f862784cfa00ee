import type { Log } from './log.ts';

/** A round that is repeated until it is stopped. */
export type Loop = {
  /** Begins the next round now, or right after the one that runs. */
  wake(): void;
  /** Resolves when the round that runs has ended; none follows. */
  stop(): Promise<void>;
};

type Options = { name: string; everyMs: number; log: Log };

/**
 * Runs `round` again and again, `everyMs` apart, or at once while it returns true ("there is more"). A failed
 * round is logged and waits like any other.
 */
export function startLoop({ name, everyMs, log }: Options, round: () => Promise<boolean>): Loop {
  let stopped = false;
  let woken = false;
  let endPause: (() => void) | undefined;

  const pause = () =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, everyMs);
      endPause = () => {
        clearTimeout(timer);
        resolve();
      };
    });

  async function run() {
    while (!stopped) {
      woken = false;
      const more = await round().catch((error: unknown) => {
        log.warn({ err: error, loop: name }, 'a background round failed and will be repeated');
        return false;
      });
      if (!stopped && !more && !woken) await pause();
    }
  }

  const ended = run();
  const wake = () => {
    woken = true;
    endPause?.();
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
