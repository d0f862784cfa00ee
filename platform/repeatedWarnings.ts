import type { LogFn, Logger } from 'pino';

/** How soon a warning is repeated for the first time, in milliseconds. Each time that is twice as long. */
const WINDOW_MS = 30_000;

/** The longest time between repetitions, in first windows: an hour. */
const MAX_WINDOWS = 120;

/** How long a warning is remembered that does not come, in first windows: longer than a round of any loop. */
const REMEMBERED_WINDOWS = 240;

/** Different warnings that are remembered; the oldest are forgotten. */
const MAX_REMEMBERED = 1_000;

/** Warnings that are written in one window at most, all together and with one message. */
const MAX_WRITTEN = 100;
const MAX_WRITTEN_OF_MESSAGE = 20;

/** Pino's number for the level `warn`. */
const WARN = 40;

/** Fields that differ each time and make no other warning of it. */
const OF_ONE_REQUEST = new Set(['requestId', 'clientRequestId', 'traceId', 'spanId']);

type Repeated = {
  message: string;
  count: number;
  windowMs: number;
  /** How long it has not come. */
  quietMs: number;
  timer?: NodeJS.Timeout;
  /** Writes the last one, with a count in a field of this name. */
  write(name: 'repeated' | 'leftOut', count: number): void;
};

/** What a warning says, without what differs each time: numbers, and ids of requests. */
function keyOf(bindings: object, fields: object, message: string): string {
  const parts = [message];
  for (const [name, value] of Object.entries({ ...bindings, ...fields })) {
    if (value instanceof Error) parts.push(`${value.name} ${value.message}`);
    else if (typeof value === 'string' && !OF_ONE_REQUEST.has(name)) parts.push(`${name}=${value}`);
  }
  return parts.join('\n');
}

/**
 * Limits how many lines are written in a window, together and with one message: an outage makes as many different
 * warnings as there are routes. The next window begins with the last one that was left out, and their number.
 */
function createLineLimit(windowMs: number) {
  const written = new Map<string, number>();
  let total = 0;
  let leftOut = 0;
  let last: { message: string; write(leftOut: number): void } | undefined;
  let timer: NodeJS.Timeout | undefined;

  function restart(): void {
    timer = undefined;
    total = 0;
    written.clear();
    if (!last || !take(last.message)) return;
    last.write(leftOut);
    last = undefined;
    leftOut = 0;
  }

  /** Counts a line. Returns whether it may be written. */
  function take(message: string): boolean {
    timer ??= setTimeout(restart, windowMs).unref();
    const ofMessage = written.get(message) ?? 0;
    if (total >= MAX_WRITTEN || ofMessage >= MAX_WRITTEN_OF_MESSAGE) return false;
    total += 1;
    written.set(message, ofMessage + 1);
    return true;
  }

  function leaveOut(count: number, message: string, write: (leftOut: number) => void): void {
    leftOut += count;
    last = { message, write };
  }

  return { take, leaveOut };
}

/**
 * A hook of pino: a warning that is repeated is written once, then after 30 seconds and at growing intervals with
 * `repeated`, how often it came since: what fails in every round of a loop warns once an hour in the end. Warnings
 * about different records are different. All together are limited: `leftOut` says how many were not written. Other
 * levels are written as they come.
 */
export function createRepeatedWarnings(windowMs = WINDOW_MS) {
  const remembered = new Map<string, Repeated>();
  const limit = createLineLimit(windowMs);

  function expectRepetition(key: string, entry: Repeated): void {
    entry.timer = setTimeout(() => {
      if (entry.count === 0) {
        entry.quietMs += entry.windowMs;
        if (entry.quietMs >= REMEMBERED_WINDOWS * windowMs) return forget(key, entry);
      } else {
        if (limit.take(entry.message)) writeRepeated(entry);
        entry.quietMs = 0;
        entry.windowMs = Math.min(2 * entry.windowMs, MAX_WINDOWS * windowMs);
      }
      expectRepetition(key, entry);
    }, entry.windowMs).unref();
  }

  function writeRepeated(entry: Repeated): void {
    entry.write('repeated', entry.count);
    entry.count = 0;
  }

  function forget(key: string, entry: Repeated): void {
    remembered.delete(key);
    clearTimeout(entry.timer);
    const { count, message } = entry;
    if (count === 0) return;
    if (limit.take(message)) writeRepeated(entry);
    else limit.leaveOut(count, message, (leftOut) => entry.write('leftOut', leftOut));
  }

  return function logMethod(
    this: Logger,
    args: Parameters<LogFn>,
    method: LogFn,
    level: number,
  ): void {
    if (level !== WARN) return method.apply(this, args);
    const [first, second] = args as unknown[];
    const hasFields = typeof first === 'object' && first !== null;
    const fields = hasFields ? first : {};
    const message = String(hasFields ? second : first);
    const write: Repeated['write'] = (name, count) =>
      method.apply(this, [{ ...fields, [name]: count }, message] as Parameters<LogFn>);
    const key = keyOf(this.bindings(), fields, message);
    const known = remembered.get(key);
    if (known) {
      known.count += 1;
      known.write = write;
      return;
    }
    if (!limit.take(message))
      return limit.leaveOut(1, message, (leftOut) => write('leftOut', leftOut));
    method.apply(this, args);
    const [oldest] = remembered;
    if (remembered.size >= MAX_REMEMBERED && oldest) forget(...oldest);
    const entry: Repeated = { message, count: 0, windowMs, quietMs: 0, write };
    remembered.set(key, entry);
    expectRepetition(key, entry);
  };
}
