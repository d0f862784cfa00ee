import type { Log } from './log.ts';

/** A function that is called repeatedly in the background. */
export type Loop = {
  /** Starts the first round. Without effect while the loop runs. */
  start(): void;
  /** True from the start until it is stopped. */
  isRunning(): boolean;
  /** Starts the next round immediately, or directly after the running one. Without effect if it does not run. */
  wake(): void;
  /** Starts no further round. Resolves when the running one has ended. The loop can be started again. */
  stop(): Promise<void>;
};

/**
 * `minIntervalMs`: minimum time between the starts of two rounds that find no more work. A function is asked after
 * each round, for loops that need an interval only while there is much to do.
 */
type LoopOptions = {
  name: string;
  everyMs: number;
  minIntervalMs?: number | (() => number);
  log: Log;
};

/**
 * Calls `round` repeatedly, from `start` on. The pause until the next round depends on the result: none for true
 * (there is more work), `everyMs` for false, else that number of milliseconds. A failed round is
 * logged.
 */
export function createLoop(options: LoopOptions, round: () => Promise<boolean | number>): Loop {
  let current: Run | undefined;
  return {
    start: () => void (current ??= startRun(options, round)),
    isRunning: () => current !== undefined,
    wake: () => current?.wake(),
    async stop() {
      const last = current;
      current = undefined;
      await last?.stop();
    },
  };
}

type Run = Pick<Loop, 'wake' | 'stop'>;

function startRun(
  { name, everyMs, minIntervalMs = 0, log }: LoopOptions,
  round: () => Promise<boolean | number>,
): Run {
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
