import type { LogFn, Logger } from 'pino';

/** How soon a warning is repeated for the first time, in milliseconds. Each time that is twice as long. */
const WINDOW_MS = 30_000;

/** The longest time between repetitions, in first windows: an hour. */
const MAX_WINDOWS = 120;

/** How long a warning is remembered that does not come, in first windows: longer than a round of any loop. */
const REMEMBERED_WINDOWS = 240;

/** Different warnings that are remembered; the oldest are forgotten. */
const MAX_REMEMBERED = 1_000;

/** Pino's number for the level `warn`. */
const WARN = 40;

/** Fields that differ each time and make no other warning of it. */
const OF_ONE_REQUEST = new Set(['requestId', 'clientRequestId', 'traceId', 'spanId']);

type Repeated = {
  count: number;
  windowMs: number;
  /** How long it has not come. */
  quietMs: number;
  timer?: NodeJS.Timeout;
  write(count: number): void;
};

/** What a warning says, without what differs each time: numbers, and ids of requests. */
function keyOf(bindings: object, fields: object, message: unknown): string {
  const parts = [String(message)];
  for (const [name, value] of Object.entries({ ...bindings, ...fields })) {
    if (value instanceof Error) parts.push(`${value.name} ${value.message}`);
    else if (typeof value === 'string' && !OF_ONE_REQUEST.has(name)) parts.push(`${name}=${value}`);
  }
  return parts.join('\n');
}

/**
 * A hook of pino: a warning that is repeated is written once, then after 30 seconds and at growing intervals with
 * `repeated`, how often it came since: what fails in every round of a loop warns once an hour in the end. Warnings
 * about different records are different. Other levels are written as they come.
 */
export function createRepeatedWarnings(windowMs = WINDOW_MS) {
  const remembered = new Map<string, Repeated>();

  function expectRepetition(key: string, entry: Repeated): void {
    entry.timer = setTimeout(() => {
      if (entry.count === 0) {
        entry.quietMs += entry.windowMs;
        if (entry.quietMs >= REMEMBERED_WINDOWS * windowMs) return forget(key, entry);
      } else {
        writeRepeated(entry);
        entry.quietMs = 0;
        entry.windowMs = Math.min(2 * entry.windowMs, MAX_WINDOWS * windowMs);
      }
      expectRepetition(key, entry);
    }, entry.windowMs).unref();
  }

  function writeRepeated(entry: Repeated): void {
    if (entry.count > 0) entry.write(entry.count);
    entry.count = 0;
  }

  function forget(key: string, entry: Repeated): void {
    remembered.delete(key);
    clearTimeout(entry.timer);
    writeRepeated(entry);
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
    const message = hasFields ? second : first;
    const key = keyOf(this.bindings(), fields, message);
    const known = remembered.get(key);
    if (known) {
      known.count += 1;
      known.write = (repeated) =>
        method.apply(this, [{ ...fields, repeated }, String(message)] as Parameters<LogFn>);
      return;
    }
    method.apply(this, args);
    const [oldest] = remembered;
    if (remembered.size >= MAX_REMEMBERED && oldest) forget(...oldest);
    const entry: Repeated = { count: 0, windowMs, quietMs: 0, write: () => undefined };
    remembered.set(key, entry);
    expectRepetition(key, entry);
  };
}
