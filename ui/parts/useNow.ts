import { useSyncExternalStore } from 'react';
import { onClockSet, serverNow } from './clock.ts';

/** One timer for all relative times of a page: they change together, and a hidden page does nothing. */
const TICK_MS = 15_000;

let now = serverNow();
let stopFollowing: (() => void) | undefined;
let timer: ReturnType<typeof setInterval> | undefined;
const listeners = new Set<() => void>();

function tick(): void {
  if (document.hidden) return;
  now = serverNow();
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  if (listeners.size === 0) {
    now = serverNow();
    timer = setInterval(tick, TICK_MS);
    document.addEventListener('visibilitychange', tick);
    stopFollowing = onClockSet(tick);
  }
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    document.removeEventListener('visibilitychange', tick);
    stopFollowing?.();
  };
}

/** The present time of the server in milliseconds; it changes every 15 seconds while the page is visible. */
export const useNow = (): number => useSyncExternalStore(subscribe, () => now);
