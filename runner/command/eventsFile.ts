import { randomInt } from 'node:crypto';
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync } from 'node:fs';
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
  /** Something that may have been the request to mask a value cannot be read; `reason` is a phrase. */
  maskLost(reason: string): void;
};

/** Longer lines are left out. */
const MAX_EVENT_BYTES = 131_072;
const CHUNK_BYTES = 262_144;
const LINE_FEED = 0x0a;
const HEAD_CHARS = 32;

/** The start of an events file: an empty line that another file, or the same one written again, does not have. */
export const eventsHead = (): string =>
  `${Array.from({ length: HEAD_CHARS - 1 }, () => ' \t'.charAt(randomInt(2))).join('')}\n`;

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

/** Passes an event on. The fields of an event are those of docs/job-types.md. */
function passEvent(event: unknown, events: CommandEvents): void {
  if (!isJsonObject(event)) events.invalid('is not an object');
  else if (typeof event.mask === 'string') events.mask(event.mask);
  else if ('mask' in event) {
    events.invalid('has a mask that is not a string');
    events.maskLost('a value to mask is not a string');
  } else if (typeof event.progress === 'number' && Number.isFinite(event.progress))
    events.progress(event.progress, typeof event.message === 'string' ? event.message : undefined);
  else if (isJsonObject(event.log) && typeof event.log.message === 'string') {
    const { level = 'info', message, data } = event.log;
    const known = LOG_LEVELS.find((each) => each === level);
    if (known) events.log(known, message, isJsonObject(data) ? data : undefined);
    else events.invalid(`has a level that is none of ${LOG_LEVELS.join(', ')}`);
  } else events.invalid('has none of progress, log and mask');
}

/** Passes one line on. */
function passLine(line: string, events: CommandEvents): void {
  if (line.trim() === '') return;
  const { event, problem } = parseEvent(line);
  if (problem === undefined) return passEvent(event, events);
  events.invalid(problem);
  if (/mask/i.test(line)) events.maskLost('a line with a value to mask cannot be read');
}

/** Opens an events file without following links, or waiting for the writer of a pipe. */
function openFile(file: string): number {
  const fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  if (fstatSync(fd).isFile()) return fd;
  closeSync(fd);
  throw new Error('it is no file');
}

/** True if the path of an open file leads to another one, or to none. */
function isReplaced(file: string, fd: number): boolean {
  const now = lstatSync(file, { throwIfNoEntry: false });
  const { dev, ino } = fstatSync(fd);
  return now?.ino !== ino || now.dev !== dev;
}

/** Divides what is read into lines, and passes these on. */
function createEventLines(events: CommandEvents) {
  /** The start of a line whose end is not there yet. */
  let rest: Buffer = Buffer.alloc(0);
  let isTooLong = false;

  function reset() {
    rest = Buffer.alloc(0);
    isTooLong = false;
  }

  function endLine(bytes: Buffer) {
    if (isTooLong || rest.length + bytes.length > MAX_EVENT_BYTES) {
      events.invalid(`is longer than ${MAX_EVENT_BYTES} bytes`);
      events.maskLost('a line of the events file is too long');
    } else passLine(Buffer.concat([rest, bytes]).toString(), events);
    reset();
  }

  return {
    reset,
    push(chunk: Buffer): void {
      let start = 0;
      for (;;) {
        const end = chunk.indexOf(LINE_FEED, start);
        if (end === -1) break;
        endLine(chunk.subarray(start, end));
        start = end + 1;
      }
      if (rest.length + chunk.length - start > MAX_EVENT_BYTES) isTooLong = true;
      rest = isTooLong ? Buffer.alloc(0) : Buffer.concat([rest, chunk.subarray(start)]);
    },
    /** Passes on an event that no line feed ends, if it is complete. False if a line has not ended. */
    passComplete(): boolean {
      const text = rest.toString().trim();
      const isObject = text.startsWith('{') && text.endsWith('}');
      if (isObject && parseEvent(text).problem === undefined) endLine(Buffer.alloc(0));
      return rest.length === 0 && !isTooLong;
    },
    /** Passes on a last line that no line feed ends. */
    end(): void {
      if (rest.length > 0 || isTooLong) endLine(Buffer.alloc(0));
    },
  };
}

/**
 * Reads what is appended to an existing file that begins with `eventsHead`. Reads are synchronous and bounded. A file that
 * was replaced, or written again, is read from its start: what was in it before may be lost.
 */
export function openEventsFile(file: string, events: CommandEvents) {
  let fd = openFile(file);
  const buffer = Buffer.alloc(CHUNK_BYTES);
  const readHead = () => buffer.toString('latin1', 0, readSync(fd, buffer, 0, HEAD_CHARS, 0));
  let head = readHead();
  let position = 0;
  const lines = createEventLines(events);

  /** Passes on the lines of the next chunk; false if there is nothing more. */
  function readChunk(): boolean {
    const size = readSync(fd, buffer, 0, CHUNK_BYTES, position);
    position += size;
    lines.push(buffer.subarray(0, size));
    return size > 0;
  }

  function startAgain(reason: string) {
    events.maskLost(reason);
    position = 0;
    lines.reset();
    head = readHead();
  }

  /** Finds a file that was not only appended to. */
  function checkFile() {
    if (isReplaced(file, fd)) {
      const next = openFile(file);
      closeSync(fd);
      fd = next;
      startAgain('the events file was replaced');
    } else if (fstatSync(fd).size < position || !readHead().startsWith(head))
      startAgain('the events file was written again, not appended to with >>');
  }

  return {
    /** Reads what was written, at most `maxBytes`. False if there may be more, or a line has not ended. */
    read(maxBytes: number): boolean {
      checkFile();
      const limit = position + maxBytes;
      while (position < limit) if (!readChunk()) return lines.passComplete();
      return false;
    },
    end: lines.end,
    close: () => closeSync(fd),
  };
}
