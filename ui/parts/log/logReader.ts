import { errorMessage } from '../../../domain/shared/errorMessage.ts';
import { isProblem, type ProblemFields } from '../problems.ts';
import type { LineRange, LogLine, LogStore } from './logStore.ts';

/** Lines of a log. With `hasMore`, others follow the last of them; without it, none does. */
export type LogPage = { lines: readonly LogLine[]; hasMore: boolean };

/** Where the lines of a log come from. */
export type LogSource = {
  /**
   * Reads lines from `fromLine` on, oldest first: up to `limit`, and fewer of large ones.
   * Error: a problem; `log_purged` with `oldestLine` in its body for lines that do not exist any more.
   */
  read: (fromLine: number, limit: number, signal: AbortSignal) => Promise<LogPage>;
  /**
   * Passes the lines after `afterLine` on as they are written, and none when the connection is made.
   * Ends when the log has ended; fails when the connection breaks.
   */
  follow?:
    | ((
        afterLine: number,
        onLines: (lines: readonly LogLine[]) => void,
        signal: AbortSignal,
      ) => Promise<void>)
    | undefined;
  /** The number of its last line, if it is known. */
  total?: number | undefined;
};

/** `live`: lines come as they are written. `waiting`: the connection broke, and is made again. */
export type LogState = 'reading' | 'live' | 'waiting' | 'ended' | 'failed';

export type LogReader = {
  readonly state: LogState;
  /** Why it failed, or why it has waited for a while. */
  readonly problem: ProblemFields | undefined;
  /** Reads these lines first: they are in view. */
  focus: (range: LineRange) => void;
  /** Goes on after a failure. */
  retry: () => void;
  stop: () => void;
};

type Options = {
  store: LogStore;
  source: LogSource;
  onChange: () => void;
  wait?: (ms: number, signal: AbortSignal) => Promise<void>;
};

const READ_LINES = 1_000;
const MAX_READS = 2;
const LONGEST_WAIT_MS = 8_000;
/** Lines of a stream are collected for this long: a page is not drawn for each of them. */
const COLLECT_MS = 40;

const sleep = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    const stop = () => {
      clearTimeout(timer);
      resolve();
    };
    signal.addEventListener('abort', stop, { once: true });
  });

const oldestLineOf = (error: unknown): number | undefined => {
  const { body } = (error ?? {}) as { body?: { oldestLine?: unknown } };
  return typeof body?.oldestLine === 'number' ? body.oldestLine : undefined;
};

/** Errors that another attempt does not mend: no session, no right, no such job. */
const isFinal = ({ status }: ProblemFields): boolean =>
  status >= 400 && status < 500 && status !== 408 && status !== 429;

/** A stream that breaks fails with an error of the browser. */
const problemOf = (error: unknown): ProblemFields =>
  isProblem(error)
    ? error
    : {
        status: 0,
        code: 'network',
        title: 'The connection was interrupted',
        detail: errorMessage(error),
        errors: [],
      };

/** After as many failures in a row, the reason is shown. */
const SAID_AFTER = 4;

const waitAfter = (failures: number, { retryAfterSeconds }: ProblemFields): number =>
  Math.min(
    LONGEST_WAIT_MS,
    retryAfterSeconds === undefined ? 250 * 2 ** failures : retryAfterSeconds * 1_000,
  );

const overlaps = (one: LineRange, other: LineRange): boolean =>
  one.from <= other.to && other.from <= one.to;

/** What is known about the end of the log. */
type End = 'unknown' | 'read' | 'connecting' | 'followed' | 'ended';

/**
 * Fills a log: reads what is in view first, then the other gaps, and follows its end. After a broken
 * connection it goes on after the last line that it has, so that no line is lost or doubled.
 */
export function createLogReader({ store, source, onChange, wait = sleep }: Options): LogReader {
  const stopped = new AbortController();
  const { signal } = stopped;
  const reading = new Set<LineRange>();
  const collected: LogLine[] = [];
  let flushTimer: ReturnType<typeof setTimeout> | undefined;
  let view: LineRange = { from: 1, to: READ_LINES };
  let end: End = source.follow ? 'connecting' : source.total === undefined ? 'unknown' : 'read';
  let waits = 0;
  let failures = 0;
  let isFailed = false;
  let isFull = false;
  let problem: ProblemFields | undefined;

  function stateNow(): LogState {
    if (isFailed) return 'failed';
    if (waits > 0) return 'waiting';
    if (end === 'followed') return 'live';
    const isRead = (end === 'read' || end === 'ended') && reading.size === 0;
    return isRead ? 'ended' : 'reading';
  }

  const changed = () => {
    if (!signal.aborted) onChange();
  };

  function keep(lines: readonly LogLine[]): void {
    store.add(lines);
    const { version } = store;
    store.shrink(Math.round((view.from + view.to) / 2));
    // What was forgotten is not read again until it is in view.
    if (store.version !== version) isFull = true;
  }

  function flush(): void {
    clearTimeout(flushTimer);
    flushTimer = undefined;
    if (signal.aborted) return;
    keep(collected.splice(0));
    changed();
    fill();
  }

  const collect = (lines: readonly LogLine[]): void => {
    failures = 0;
    for (const line of lines) collected.push(line);
    flushTimer ??= setTimeout(flush, COLLECT_MS);
    end = 'followed';
  };

  /** The next lines to read: of the view, of the rest, or after the last one. */
  function nextRange(): LineRange | undefined {
    const isFree = (range: LineRange) => ![...reading].some((other) => overlaps(range, other));
    for (const within of isFull ? [view] : [view, undefined]) {
      for (const { from, to } of store.gaps(within)) {
        for (let start = from; start <= to; start += READ_LINES) {
          const range = { from: start, to: Math.min(to, start + READ_LINES - 1) };
          if (isFree(range)) return range;
        }
      }
    }
    const after = { from: store.last + 1, to: store.last + READ_LINES };
    return end === 'unknown' && reading.size === 0 ? after : undefined;
  }

  async function readRange(range: LineRange): Promise<void> {
    const limit = range.to - range.from + 1;
    const { lines, hasMore } = await source.read(range.from, limit, signal);
    keep(lines);
    const last = lines.at(-1)?.line ?? range.from - 1;
    // The rest of the range is a gap, which is read next. A page without lines leads no further.
    if (hasMore && last >= range.from) return;
    if (end === 'unknown') end = 'read';
    // The source has no such lines, although they were before: asking again would not end.
    if (last < range.to && range.to <= store.last) store.extend({ first: range.to + 1 });
  }

  /** Returns whether to go on after an error. */
  async function recover(error: unknown): Promise<boolean> {
    if (signal.aborted) return false;
    const oldest = oldestLineOf(error);
    if (oldest !== undefined && oldest > store.first) {
      store.extend({ first: oldest, last: oldest - 1 });
      return true;
    }
    problem = problemOf(error);
    isFailed = isFinal(problem);
    if (isFailed) {
      changed();
      return false;
    }
    failures += 1;
    waits += 1;
    changed();
    await wait(waitAfter(failures, problem), signal);
    waits -= 1;
    return !signal.aborted && !isFailed;
  }

  async function run(range: LineRange): Promise<void> {
    reading.add(range);
    try {
      await readRange(range);
      failures = 0;
    } catch (error) {
      if (!(await recover(error))) return;
    } finally {
      reading.delete(range);
    }
    fill();
    changed();
  }

  function fill(): void {
    while (!signal.aborted && !isFailed && reading.size < MAX_READS) {
      const range = nextRange();
      if (!range) return;
      void run(range);
    }
  }

  async function followEnd(follow: NonNullable<LogSource['follow']>): Promise<void> {
    for (;;) {
      try {
        await follow(store.last, collect, signal);
        end = 'ended';
        flush();
        return;
      } catch (error) {
        // What has come before the connection broke counts: the next stream starts after it.
        flush();
        if (!isFailed) end = 'connecting';
        if (isFailed || !(await recover(error))) return;
      }
    }
  }

  function start(): void {
    isFailed = false;
    if (source.follow && end !== 'ended') void followEnd(source.follow);
    fill();
  }

  store.extend({ last: source.total });
  start();
  return {
    get state() {
      return stateNow();
    },
    get problem() {
      return isFailed || (waits > 0 && failures >= SAID_AFTER) ? problem : undefined;
    },
    focus(range) {
      view = range;
      fill();
    },
    retry() {
      if (!isFailed) return;
      failures = 0;
      start();
      changed();
    },
    stop() {
      stopped.abort();
      clearTimeout(flushTimer);
    },
  };
}
