import type { LogFn, Logger } from 'pino';

/** A warning is repeated at most this often, in milliseconds. */
const WINDOW_MS = 30_000;

/** Different warnings that are remembered; more are written as they come. */
const MAX_REMEMBERED = 1_000;

/** Pino's number for the level `warn`. */
const WARN = 40;

/** Fields that differ each time and make no other warning of it. */
const OF_ONE_REQUEST = new Set(['requestId', 'clientRequestId', 'traceId', 'spanId']);

type Repeated = { count: number; write(count: number): void };

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
 * A hook of pino: a warning that is repeated is written once, and then at most every 30 seconds with
 * `repeated`, how often it came since. Warnings about different records are different. Other levels are
 * written as they come.
 */
export function createRepeatedWarnings(windowMs = WINDOW_MS) {
  const remembered = new Map<string, Repeated>();

  function expectRepetition(key: string, entry: Repeated): void {
    setTimeout(() => {
      if (entry.count === 0) return void remembered.delete(key);
      entry.write(entry.count);
      entry.count = 0;
      expectRepetition(key, entry);
    }, windowMs).unref();
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
    if (remembered.size >= MAX_REMEMBERED) return;
    const entry: Repeated = { count: 0, write: () => undefined };
    remembered.set(key, entry);
    expectRepetition(key, entry);
  };
}
