import { setTimeout as sleep } from 'node:timers/promises';
import type { Lane } from '../domain/jobType.ts';

/** How long a finished attempt tries to write its outcome; an inline one must end within its workflow task. */
const PERSIST_MS: Readonly<Record<Lane, number>> = {
  inline: 2_000,
  activity: 45_000,
  delivery: 45_000,
  steps: 60_000,
};

/** Repeats a write that fails, for as long as the lane allows; then throws its last error. */
export async function persistently<T>(write: () => Promise<T>, lane: Lane): Promise<T> {
  const until = Date.now() + PERSIST_MS[lane];
  for (let waitMs = 100; ; waitMs = Math.min(waitMs * 2, 5_000)) {
    try {
      return await write();
    } catch (error) {
      if (Date.now() + waitMs > until) throw error;
      await sleep(waitMs);
    }
  }
}
