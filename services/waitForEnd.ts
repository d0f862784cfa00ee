import type { Changes } from '../db/core/notifications.ts';
import type { Clock } from '../platform/clock.ts';
import { waitForChange } from './waitForChange.ts';

/** Requests of one process that wait for an end at once; one more is answered without waiting. */
const MAX_WAITING = 1_000;

/** What is waited for: news come on `topic`, `hasEnded` looks, `read` gives what is answered and `isEnd` says whether that is the end. */
type Wait<T> = {
  topic: string;
  hasEnded(): Promise<boolean>;
  read(): Promise<T>;
  isEnd(found: T): boolean;
};

export type WaitLimits = {
  waitMs: number;
  signal: AbortSignal;
  /** It was just made: it is not looked at before there is news of it. */
  fresh?: boolean;
};

/** Waits at most `waitMs` for the end of something and returns it as it is then. */
export function createWaitForEnd({ changes, clock }: { changes: Changes; clock: Clock }) {
  let waiting = 0;

  return async function waitForEnd<T>(
    { topic, hasEnded, read, isEnd }: Wait<T>,
    { waitMs, signal, fresh = false }: WaitLimits,
  ): Promise<T> {
    const deadline = clock.now().getTime() + waitMs;
    if (waiting >= MAX_WAITING) return read();
    waiting += 1;
    try {
      for (let look = !fresh; ; look = true) {
        using change = waitForChange(changes, topic);
        const ended = look && (await hasEnded());
        const leftMs = deadline - clock.now().getTime();
        if (ended || leftMs <= 0 || signal.aborted) return await read();
        // News on this topic mostly is the end: what is read then is, mostly, the answer.
        const found = (await change.within(leftMs, signal)) ? await read() : undefined;
        if (found !== undefined && isEnd(found)) return found;
      }
    } finally {
      waiting -= 1;
    }
  };
}
