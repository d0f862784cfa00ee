/** A line of a log. Lines are counted from 1 without gaps. */
export type LogLine = {
  line: number;
  time: string;
  level: string;
  message: string;
  attempt: number;
  data?: Readonly<Record<string, unknown>> | null | undefined;
};

/** Lines from `from` to `to`, both included. */
export type LineRange = { from: number; to: number };

const BLOCK_LINES = 500;
/** What a line costs beside its text, in characters. */
const LINE_COST = 100;

type Block = { lines: (LogLine | undefined)[]; count: number; chars: number };

export type LogStore = {
  /** Adds lines in any order. A line that is there already is nothing. Returns how many are new. */
  add(lines: readonly LogLine[]): number;
  /** Says that the log has at least `line` lines, or that lines before `first` are purged. */
  extend(bounds: { last?: number | undefined; first?: number | undefined }): void;
  get(line: number): LogLine | undefined;
  /** The first line that is not purged, and the last line that is known to exist. */
  readonly first: number;
  readonly last: number;
  /** How many lines are in memory. */
  readonly loaded: number;
  /** Increases with every change. */
  readonly version: number;
  /** The ranges within `range` that are not in memory. */
  gaps(range?: LineRange): LineRange[];
  /** Lines in memory within `range`, in order. */
  lines(range?: LineRange): Generator<LogLine, void>;
  /** Forgets the blocks that are farthest from `near` until the log fits into its memory again. */
  shrink(near: number): void;
};

const textSize = ({ message, data }: LogLine): number =>
  LINE_COST + message.length + (data ? JSON.stringify(data).length : 0);

const blockOf = (line: number): number => Math.floor((line - 1) / BLOCK_LINES);

/**
 * Holds the lines of a log by their numbers. Lines may come in any order, twice and with gaps;
 * `gaps` says what is to be read. `maxChars` bounds the memory.
 */
export function createLogStore(maxChars = 48_000_000): LogStore {
  const blocks = new Map<number, Block>();
  let first = 1;
  let last = 0;
  let loaded = 0;
  let chars = 0;
  let version = 0;

  function addLine(line: LogLine): boolean {
    if (!Number.isInteger(line.line) || line.line < first) return false;
    const number = blockOf(line.line);
    const block = blocks.get(number) ?? { lines: [], count: 0, chars: 0 };
    blocks.set(number, block);
    const at = (line.line - 1) % BLOCK_LINES;
    if (block.lines[at]) return false;
    const size = textSize(line);
    block.lines[at] = line;
    block.count += 1;
    block.chars += size;
    loaded += 1;
    chars += size;
    last = Math.max(last, line.line);
    return true;
  }

  function forget(number: number): void {
    const block = blocks.get(number);
    if (!block) return;
    blocks.delete(number);
    loaded -= block.count;
    chars -= block.chars;
  }

  const get = (line: number) => blocks.get(blockOf(line))?.lines[(line - 1) % BLOCK_LINES];

  const within = ({ from, to }: LineRange): LineRange => ({
    from: Math.max(from, first),
    to: Math.min(to, last),
  });

  function* lines(range: LineRange = { from: first, to: last }): Generator<LogLine, void> {
    const { from, to } = within(range);
    for (let number = blockOf(from); number <= blockOf(to); number += 1) {
      for (const line of blocks.get(number)?.lines ?? [])
        if (line && line.line >= from && line.line <= to) yield line;
    }
  }

  function gaps(range: LineRange = { from: first, to: last }): LineRange[] {
    const { from, to } = within(range);
    const found: LineRange[] = [];
    let next = from;
    for (const { line } of lines({ from, to })) {
      if (line > next) found.push({ from: next, to: line - 1 });
      next = line + 1;
    }
    if (next <= to) found.push({ from: next, to });
    return found;
  }

  return {
    add(added) {
      const before = loaded;
      for (const line of added) addLine(line);
      if (loaded > before) version += 1;
      return loaded - before;
    },
    extend({ last: newLast = last, first: newFirst = first }) {
      if (newLast <= last && newFirst <= first) return;
      last = Math.max(last, newLast);
      first = Math.max(first, newFirst);
      for (const number of [...blocks.keys()]) if (number < blockOf(first)) forget(number);
      version += 1;
    },
    get: (line) => (line < first ? undefined : get(line)),
    get first() {
      return first;
    },
    get last() {
      return last;
    },
    get loaded() {
      return loaded;
    },
    get version() {
      return version;
    },
    gaps,
    lines,
    shrink(near) {
      const distance = (number: number) => Math.abs(number - blockOf(near));
      const farthest = [...blocks.keys()].sort((one, other) => distance(other) - distance(one));
      for (const number of farthest) {
        if (chars <= maxChars) return;
        // What is being read stays, whatever its size.
        if (distance(number) <= 1) return;
        forget(number);
        version += 1;
      }
    },
  };
}
