import type { Notifications } from '../../db/core/notifications.ts';
import type { SlotHolder, Slots } from '../../platform/slots.ts';
import { waitForChange } from './waitForChange.ts';

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

type Deps = { notifications: Notifications; slots: { waits: Slots } };

/**
 * Waits until a record is finished, at most `waitMs`, and returns it as it is then. A wait is a
 * preference: without a free slot for this caller, the answer is the record as it is now.
 */
export const createWaitForEnd = ({ notifications, slots }: Deps) =>
  async function waitForEnd<T>(
    caller: SlotHolder,
    { topic, hasEnded, read, isFinished }: WaitTarget<T>,
    { waitMs, signal, justCreated = false }: WaitLimits,
  ): Promise<T> {
    const deadline = performance.now() + waitMs;
    const release = slots.waits.tryTake(caller);
    if (!release) return read();
    try {
      for (let check = !justCreated; ; check = true) {
        using change = waitForChange(notifications, topic);
        const ended = check && (await hasEnded());
        const leftMs = deadline - performance.now();
        if (ended || leftMs <= 0 || signal.aborted) return await read();
        // Most notifications on this topic are the end, so the full read usually is the answer.
        const found = (await change.wait(leftMs, signal)) ? await read() : undefined;
        if (found !== undefined && isFinished(found)) return found;
      }
    } finally {
      release();
    }
  };
