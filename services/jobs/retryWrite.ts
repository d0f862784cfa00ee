import { setTimeout as sleep } from 'node:timers/promises';
import type { Lane } from '../../domain/jobs/jobType.ts';

/**
 * How long a finished attempt retries writing its outcome, in milliseconds. An inline attempt must
 * end within its workflow task, which has ten seconds.
 */
const RETRY_WITHIN_MS: Readonly<Record<Lane, number>> = {
  inline: 2_000,
  activity: 45_000,
  delivery: 45_000,
  workflow: 60_000,
  // The runner asks again.
  remote: 5_000,
};

/**
 * Retries a failing write for as long as the lane allows, with growing delays. Throws its last
 * error.
 */
export async function retryWrite<T>(write: () => Promise<T>, lane: Lane): Promise<T> {
  const deadline = performance.now() + RETRY_WITHIN_MS[lane];
  for (let waitMs = 100; ; waitMs = Math.min(waitMs * 2, 5_000)) {
    try {
      return await write();
    } catch (error) {
      if (performance.now() + waitMs > deadline) throw error;
      await sleep(waitMs);
    }
  }
}
