import type { Socket } from 'node:net';
import type { LogLevel } from '../../domain/jobs/jobs.ts';
import { errorMessage } from '../../domain/shared/errorMessage.ts';
import type { AttemptTools } from './attempt.ts';
import { openEventsFile } from './eventsFile.ts';
import { createLineReader } from './lineReader.ts';
import { storable } from './storable.ts';
import type { Masker } from '../../domain/shared/masker.ts';

/** Most characters of a line. */
const MAX_LINE_CHARS = 8_192;
const MAX_DATA_CHARS = 16_384;
const MAX_PROGRESS_CHARS = 200;

const EVENTS_EVERY_MS = 250;
const EVENTS_BYTES_PER_READ = 1_048_576;
/** What is read of the events file when no more lines can wait for it. */
const MAX_AWAITED_EVENTS_BYTES = 4_194_304;
/** What is read of the events file after the end of the command. */
const MAX_LAST_EVENTS_BYTES = 16_777_216;

/** Values that a command asks to mask, and complaints about its events: more are left out. */
const MAX_MASKS = 200;
const MAX_COMPLAINTS = 20;

/** Lines that wait until the events before them are read, which may say what to mask in them. */
const MAX_WAITING_LINES = 1_000;
const MAX_WAITING_CHARS = 1_048_576;

/**
 * After so long of reading, a pause of the same length follows: a command that prints without end must not
 * keep the runner from its other commands. It waits for its pipe then.
 */
const READING_MS = 25;

type Waiting = { stream: 'stdout' | 'stderr'; text: string; at: Date };

/** Passes the chunks of a socket on, with pauses in which others have the processor. */
function readInTurns(socket: Socket, onChunk: (chunk: Buffer) => void): void {
  let spentMs = 0;
  socket.on('data', (chunk: Buffer) => {
    const startedAt = performance.now();
    onChunk(chunk);
    spentMs += performance.now() - startedAt;
    if (spentMs < READING_MS) return;
    socket.pause();
    setTimeout(() => socket.resume(), spentMs);
    spentMs = 0;
  });
}

export type Output = ReturnType<typeof createOutput>;

/**
 * Passes the output and the events of a command on, with secrets masked. What a command prints after it has
 * asked to mask a value is masked: lines wait until the events before them are read.
 */
export function createOutput(tools: AttemptTools, masker: Masker, eventsPath: string) {
  let waiting: Waiting[] = [];
  let waitingChars = 0;
  let masks = 0;
  let complaints = 0;
  /** Why no output is passed on any more. */
  let withheldFor: string | undefined;
  let withheld = 0;

  const report = (level: LogLevel, message: string, data?: object, at = new Date()) =>
    tools.line(level, storable(masker.text(message), MAX_LINE_CHARS), data, at);

  function complain(message: string) {
    if (complaints++ < MAX_COMPLAINTS) report('warn', message);
  }

  /** From now on, no line of the outputs is passed on. */
  function withhold(reason: string) {
    if (withheldFor !== undefined) return;
    withheldFor = reason;
    report(
      'error',
      `The output from here on is left out, because a secret may be in it: ${reason}`,
    );
  }

  function maskedData(data: object | undefined): object | undefined {
    if (data === undefined) return undefined;
    const masked = masker.json(data) as object;
    return JSON.stringify(masked).length > MAX_DATA_CHARS
      ? { leftOut: `more than ${MAX_DATA_CHARS} characters` }
      : masked;
  }

  const events = openEventsFile(eventsPath, {
    progress: (percent, message) =>
      tools.progress(
        Math.min(100, Math.max(0, percent)),
        message === undefined || withheldFor !== undefined
          ? undefined
          : storable(masker.text(message), MAX_PROGRESS_CHARS),
      ),
    log(level, message, data) {
      if (withheldFor === undefined) report(level, message, maskedData(data));
      else withheld++;
    },
    mask(value) {
      if (masks++ >= MAX_MASKS || !masker.add(value))
        withhold('there are too many values to mask, or one is too long');
    },
    invalid: (reason) => complain(`A line of the events file ${reason}; it is left out`),
    maskLost: withhold,
  });

  /** Called by timers and sockets: what fails here must fail nothing else of the runner. */
  function readEvents(maxBytes: number): boolean {
    try {
      return events.read(maxBytes);
    } catch (error) {
      withhold(`the events file cannot be read: ${errorMessage(error)}`);
      return true;
    }
  }

  /** Passes on the lines that wait, as soon as the events before them are read; those that cannot wait are left out. */
  function flush({ maxBytes = EVENTS_BYTES_PER_READ, canWait = true } = {}) {
    const isRead = readEvents(maxBytes);
    if (!isRead && canWait) return;
    const lines = waiting;
    waiting = [];
    waitingChars = 0;
    if (!isRead && lines.length > 0)
      complain('Lines are left out: the events before them were not read, and may mask a secret');
    for (const { stream, text, at } of lines)
      if (withheldFor === undefined && isRead) report('info', text, { stream }, at);
      else withheld++;
  }

  const timer = setInterval(() => flush(), EVENTS_EVERY_MS);

  function read(socket: Socket, stream: Waiting['stream']) {
    const lines = createLineReader({
      onLine(text) {
        waiting.push({ stream, text, at: new Date() });
        waitingChars += text.length;
        if (waiting.length >= MAX_WAITING_LINES || waitingChars >= MAX_WAITING_CHARS)
          flush({ maxBytes: MAX_AWAITED_EVENTS_BYTES, canWait: false });
      },
      holdBack: (text) => masker.unfinished(text),
    });
    readInTurns(socket, (chunk) => lines.push(chunk));
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    return closed.then(() => lines.end());
  }

  return {
    read,
    /** Adds a line of the runner itself. */
    note: (level: LogLevel, message: string) => report(level, message),
    /** Passes on what is left. All processes of the command have ended. */
    end(): void {
      clearInterval(timer);
      readEvents(MAX_LAST_EVENTS_BYTES);
      events.end();
      flush({ canWait: false });
      events.close();
      if (withheld > 0)
        report('error', `Lines that are left out, because a secret may be in them: ${withheld}`);
    },
  };
}
