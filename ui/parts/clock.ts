/**
 * The clock of the server. That of the browser may be hours wrong, and may be set while pages are open; each
 * answer says what time it is. `Date.now()` is used here only.
 */

/** The time of an answer has no milliseconds, and may be old by as much when the server is busy. */
const STEP_MS = 1_000;

let offsetMs = 0;
const listeners = new Set<() => void>();

/** What the clock of this browser says: for durations that are measured in it. */
export const localNow = (): number => Date.now();

/** The present time of the server in milliseconds, as far as its answers have notified it. */
export const serverNow = (): number => Date.now() + offsetMs;

/** The time of the server at a time of this browser. */
export const toServerTime = (local: number): number => local + offsetMs;

/** Calls `listener` when the time of the server turns out to be another one. */
export function onClockSet(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/**
 * Compares the `Date` of an answer with the time of this browser in which it was written, between `sentAt` and
 * `receivedAt`. A difference that these explain changes nothing.
 */
export function noteServerDate(date: string | null, sentAt: number, receivedAt: number): void {
  const at = Date.parse(date ?? '');
  if (Number.isNaN(at)) return;
  const [least, most] = [at - receivedAt, at + STEP_MS - sentAt];
  if (offsetMs >= least - STEP_MS && offsetMs <= most + STEP_MS) return;
  offsetMs = Math.round((least + most) / 2);
  for (const listener of [...listeners]) listener();
}
