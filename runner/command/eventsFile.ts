import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { problemText, parseStrictJson } from '../../platform/strictJson.ts';
import { LOG_LEVELS, type LogLevel } from '../../domain/jobs/jobs.ts';
import { isJsonObject } from '../../domain/shared/jsonObject.ts';

/** What a command appends to its events file, one JSON object a line. */
export type CommandEvents = {
  progress(percent: number, message: string | undefined): void;
  log(level: LogLevel, message: string, data: object | undefined): void;
  mask(value: string): void;
  /** A line that is none of these; `reason` is a phrase. */
  invalid(reason: string): void;
};

/** Longer lines are left out. */
const MAX_EVENT_BYTES = 131_072;
const CHUNK_BYTES = 262_144;
const LINE_FEED = 0x0a;

const IN_DATA = /^\/log\/data(?:\/|$)/;

/**
 * Parses a line. Data of the log of which `JSON.parse` would lose a part is left out, and the entry says
 * so; `problem`: why the whole line cannot be read.
 */
function parseEvent(line: string): { event?: unknown; problem?: string } {
  const { value, errors } = parseStrictJson(line, () => true);
  const [first] = errors;
  if (!first) return { event: value };
  if (first.code === 'json') return { problem: 'is not JSON' };
  const { pointer, message } = first;
  if (!errors.every((each) => IN_DATA.test(each.pointer)))
    return { problem: pointer === '' ? message : `has an error at ${pointer}: it ${message}` };
  const event = JSON.parse(line) as { log: object };
  const leftOut = problemText(first, '/log/data');
  return { event: { ...event, log: { ...event.log, data: { leftOut } } } };
}

/** Passes one line on. The fields of an event are those of docs/job-types.md. */
function passEvent(line: string, events: CommandEvents): void {
  if (line.trim() === '') return;
  const { event, problem } = parseEvent(line);
  if (problem !== undefined) events.invalid(problem);
  else if (!isJsonObject(event)) events.invalid('is not an object');
  else if (typeof event.mask === 'string') events.mask(event.mask);
  else if (typeof event.progress === 'number' && Number.isFinite(event.progress))
    events.progress(event.progress, typeof event.message === 'string' ? event.message : undefined);
  else if (isJsonObject(event.log) && typeof event.log.message === 'string') {
    const { level = 'info', message, data } = event.log;
    const known = LOG_LEVELS.find((each) => each === level);
    if (known) events.log(known, message, isJsonObject(data) ? data : undefined);
    else events.invalid(`has a level that is none of ${LOG_LEVELS.join(', ')}`);
  } else events.invalid('has none of progress, log and mask');
}

/** Reads what is appended to an existing file. Reads are synchronous and bounded. */
export function openEventsFile(file: string, events: CommandEvents) {
  const fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW);
  const buffer = Buffer.alloc(CHUNK_BYTES);
  let position = 0;
  /** The start of a line whose end is not there yet. */
  let rest: Buffer = Buffer.alloc(0);
  let isTooLong = false;

  function passLine(bytes: Buffer) {
    if (isTooLong || rest.length + bytes.length > MAX_EVENT_BYTES)
      events.invalid(`is longer than ${MAX_EVENT_BYTES} bytes`);
    else passEvent(Buffer.concat([rest, bytes]).toString(), events);
    rest = Buffer.alloc(0);
    isTooLong = false;
  }

  /** Passes on the lines of the next chunk; false if there is nothing more. */
  function readChunk(): boolean {
    // A command that writes with `>` instead of `>>` starts the file again.
    if (fstatSync(fd).size < position) position = 0;
    const size = readSync(fd, buffer, 0, CHUNK_BYTES, position);
    position += size;
    let start = 0;
    for (;;) {
      const end = buffer.subarray(0, size).indexOf(LINE_FEED, start);
      if (end === -1) break;
      passLine(buffer.subarray(start, end));
      start = end + 1;
    }
    if (rest.length + size - start > MAX_EVENT_BYTES) isTooLong = true;
    rest = isTooLong ? Buffer.alloc(0) : Buffer.concat([rest, buffer.subarray(start, size)]);
    return size > 0;
  }

  return {
    /** Reads what was appended, at most `maxBytes`. True if there may be more. */
    read(maxBytes: number): boolean {
      const limit = position + maxBytes;
      while (position < limit) if (!readChunk()) return false;
      return true;
    },
    /** Passes on a last line that no line feed ends. */
    end(): void {
      if (rest.length > 0) passLine(Buffer.alloc(0));
    },
    close: () => closeSync(fd),
  };
}
