import { setTimeout, clearTimeout } from 'node:timers';

/** Raw bytes of a line that are kept: escape sequences are not text, and characters have up to 4 bytes. */
const MAX_LINE_BYTES = 65_536;

/** A line that has not ended is passed on after this time, as far as it is there. */
const PARTIAL_MS = 1_000;

const [LINE_FEED, RETURN] = [0x0a, 0x0d];

/** Control sequences of terminals (ECMA-48): CSI, OSC and other strings, and two-character ones. */
const SEQUENCES =
  // oxlint-disable-next-line no-control-regex
  /\u001b\[[0-?]*[ -/]*[@-~]|\u009b[0-?]*[ -/]*[@-~]|\u001b[\]PX^_][^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)|\u001b[ -/]*[0-Z\\^-~]/g;

/** The start of a sequence at the end of a text. */
// oxlint-disable-next-line no-control-regex
const UNFINISHED_SEQUENCE = /(?:\u001b|\u009b)[^\n]{0,64}$/;

const stripSequences = (text: string): string => text.replaceAll(SEQUENCES, '');

type LineReaderOptions = {
  /** Called with each line, and with parts of a line that takes long. */
  onLine(text: string): void;
  /** How many characters at the end of an unfinished line must not be passed on yet. */
  holdBack(text: string): number;
  partialMs?: number;
};

/**
 * Splits the output of a command into lines: UTF-8 with U+FFFD for invalid bytes, without control sequences
 * of terminals, of texts that a carriage return overwrites only the last. It keeps at most 64 KiB of a line.
 */
export function createLineReader({ onLine, holdBack, partialMs = PARTIAL_MS }: LineReaderOptions) {
  let bytes: Buffer[] = [];
  let size = 0;
  /** Text of the line that was decoded for a part, and held back. */
  let held = '';
  let decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  /** The decoder has been given a part of the line: it may hold the start of a character. */
  let isPartDecoded = false;
  /** The line ended with a carriage return so far: what follows overwrites it, unless the line ends. */
  let isReturned = false;
  let isCut = false;
  let hasPart = false;
  let timer: NodeJS.Timeout | undefined;

  function startAgain() {
    bytes = [];
    size = 0;
    held = '';
    isReturned = false;
    isCut = false;
    if (isPartDecoded) decoder = new TextDecoder('utf-8', { ignoreBOM: true });
    isPartDecoded = false;
  }

  function keep(part: Buffer) {
    const free = MAX_LINE_BYTES - size;
    if (part.length > free) isCut = true;
    if (free <= 0 || part.length === 0) return;
    // A copy: a view would keep the whole chunk in memory.
    const kept = Buffer.from(part.subarray(0, free));
    bytes.push(kept);
    size += kept.length;
  }

  function append(segment: Buffer) {
    if (segment.length === 0) return;
    let end = segment.length;
    while (end > 0 && segment[end - 1] === RETURN) end--;
    const text = segment.subarray(0, end);
    if (text.length > 0 && isReturned) startAgain();
    const overwritten = text.lastIndexOf(RETURN);
    if (overwritten !== -1) startAgain();
    keep(text.subarray(overwritten + 1));
    isReturned ||= end < segment.length;
  }

  const decode = (isEnd: boolean): string => {
    const text = held + decoder.decode(Buffer.concat(bytes), { stream: !isEnd });
    bytes = [];
    isPartDecoded = !isEnd;
    return stripSequences(text);
  };

  /** A secret that the cut divides is left out as a whole. */
  const withoutUnfinished = (text: string) => text.slice(0, text.length - holdBack(text));

  function endLine() {
    clearTimeout(timer);
    timer = undefined;
    const text = decode(true);
    // The rest of a line whose parts were passed on is no line if there is none.
    if (text !== '' || !hasPart) onLine(isCut ? withoutUnfinished(text) : text);
    hasPart = false;
    startAgain();
  }

  function passPart() {
    timer = undefined;
    if (isReturned || isCut) return;
    const text = decode(false);
    const sequence = UNFINISHED_SEQUENCE.exec(text)?.[0].length ?? 0;
    const ready = text.length - Math.max(sequence, holdBack(text));
    held = text.slice(ready);
    size = Buffer.byteLength(held);
    if (ready === 0) return;
    hasPart = true;
    onLine(text.slice(0, ready));
  }

  return {
    push(chunk: Buffer): void {
      let start = 0;
      for (;;) {
        const end = chunk.indexOf(LINE_FEED, start);
        append(chunk.subarray(start, end === -1 ? chunk.length : end));
        if (end === -1) break;
        endLine();
        start = end + 1;
      }
      if (size > 0) timer ??= setTimeout(passPart, partialMs);
    },
    /** Passes on what is left at the end of the output. */
    end(): void {
      clearTimeout(timer);
      timer = undefined;
      if (size > 0 || isReturned) endLine();
    },
  };
}
