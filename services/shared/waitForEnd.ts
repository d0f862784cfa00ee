import type { Notifications } from '../../db/core/notifications.ts';
import { waitForChange } from './waitForChange.ts';

/**
 * Requests of one process that can wait together. Further requests are answered without waiting.
 */
const MAX_WAITERS = 1_000;

/**
 * The record to wait for. Its changes are notified on `topic`. `hasEnded` is a cheap query, `read`
 * returns what the caller answers with, and `isFinished` tests that value.
 */
type WaitTarget<T> = {
  topic: string;
  hasEnded(): Promise<boolean>;
  read(): Promise<T>;
  isFinished(found: T): boolean;
};

export type WaitLimits = {
  waitMs: number;
  signal: AbortSignal;
  /** The record was created a moment ago: the first read waits for a notification. */
  justCreated?: boolean;
};

/** Waits until a record is finished, at most `waitMs`, and returns it as it is then. */
export function createWaitForEnd({ notifications }: { notifications: Notifications }) {
  let waiting = 0;

  return async function waitForEnd<T>(
    { topic, hasEnded, read, isFinished }: WaitTarget<T>,
    { waitMs, signal, justCreated = false }: WaitLimits,
  ): Promise<T> {
    const deadline = Date.now() + waitMs;
    if (waiting >= MAX_WAITERS) return read();
    waiting += 1;
    try {
      for (let check = !justCreated; ; check = true) {
        using change = waitForChange(notifications, topic);
        const ended = check && (await hasEnded());
        const leftMs = deadline - Date.now();
        if (ended || leftMs <= 0 || signal.aborted) return await read();
        // Most notifications on this topic are the end, so the full read usually is the answer.
        const found = (await change.wait(leftMs, signal)) ? await read() : undefined;
        if (found !== undefined && isFinished(found)) return found;
      }
    } finally {
      waiting -= 1;
    }
  };
}
