import { localNow } from '../../parts/clock.ts';

/** The last input in any tab of the browser, in milliseconds. */
const KEY = 'holdfast-input';
const EVENTS = ['pointerdown', 'pointermove', 'keydown', 'wheel'] as const;
/** Input is noted at most this often. */
const NOTE_MS = 1_000;

let last = localNow();

function note(): void {
  const now = localNow();
  if (now >= last && now - last < NOTE_MS) return;
  last = now;
  try {
    localStorage.setItem(KEY, String(now));
  } catch {
    // Storage is disabled: each tab knows its own input.
  }
}

export function watchInput(): void {
  for (const event of EVENTS)
    document.addEventListener(event, note, { capture: true, passive: true });
}

function lastElsewhere(): number {
  try {
    return Number(localStorage.getItem(KEY) ?? 0);
  } catch {
    return 0;
  }
}

/** Milliseconds since the user of this browser has last done something; opening a page counts. */
export const idleMs = (): number => localNow() - Math.max(last, lastElsewhere());
