import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 20;

/** Resolves when nothing is in progress any more, or after `withinMs`. */
export async function waitUntilIdle(isIdle: () => boolean, withinMs: number): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!isIdle() && performance.now() < deadline) await sleep(POLL_MS);
}
