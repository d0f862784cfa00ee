import { escapeRegex } from '../escapeRegex.ts';
import type { LineRange, LogLine, LogStore } from './logStore.ts';

/** Which lines are shown. Empty sets show all. */
export type LogFilter = { levels: ReadonlySet<string>; attempt: number | null };

export const ALL_LINES: LogFilter = { levels: new Set(), attempt: null };

export const isFiltering = ({ levels, attempt }: LogFilter): boolean =>
  levels.size > 0 || attempt !== null;

/** A row of the view: a line, or lines that are not in memory yet. */
export type LogRow = { kind: 'line'; line: number } | ({ kind: 'gap' } & LineRange);

/** The rows of a log by their position. */
export type LogRows = {
  count: number;
  rowAt(index: number): LogRow;
  /** The row of a line, or of the first line after it. */
  indexOf(line: number): number;
};

export const passesFilter = ({ level, attempt }: LogLine, filter: LogFilter): boolean =>
  (filter.levels.size === 0 || filter.levels.has(level)) &&
  (filter.attempt === null || filter.attempt === attempt);

/** Without a filter, each line has its row before it is read, so that nothing moves when it comes. */
function allRows({ first, last }: LogStore): LogRows {
  return {
    count: Math.max(last - first + 1, 0),
    rowAt: (index) => ({ kind: 'line', line: first + index }),
    indexOf: (line) => Math.max(0, Math.min(line, last) - first),
  };
}

const startOf = (row: LogRow): number => (row.kind === 'line' ? row.line : row.from);
const endOf = (row: LogRow): number => (row.kind === 'line' ? row.line : row.to);

/** The first row that ends at `line` or after it. */
function findRow(rows: readonly LogRow[], line: number): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const row = rows[middle];
    if (row && endOf(row) < line) low = middle + 1;
    else high = middle;
  }
  return Math.min(low, Math.max(rows.length - 1, 0));
}

/** The rows that pass a filter. What is not in memory is a row of its own, since it may pass. */
export function logRows(store: LogStore, filter: LogFilter): LogRows {
  if (!isFiltering(filter)) return allRows(store);
  const rows: LogRow[] = store.gaps().map((gap) => ({ kind: 'gap', ...gap }));
  for (const line of store.lines())
    if (passesFilter(line, filter)) rows.push({ kind: 'line', line: line.line });
  rows.sort((one, other) => startOf(one) - startOf(other));
  return {
    count: rows.length,
    rowAt: (index) => rows[index] ?? { kind: 'gap', from: 0, to: 0 },
    indexOf: (line) => findRow(rows, line),
  };
}

/** A match of a search: from `start` to `end` in the message of a line. */
export type LogMatch = { line: number; start: number; end: number };

export const MAX_MATCHES = 10_000;

/** The matches of a text in the lines that are in memory, in any letter case; at most MAX_MATCHES. */
export function findMatches(store: LogStore, filter: LogFilter, text: string): LogMatch[] {
  if (text === '') return [];
  // A pattern keeps the positions, which lower-casing could move.
  const pattern = new RegExp(escapeRegex(text), 'giu');
  const matches: LogMatch[] = [];
  for (const line of store.lines()) {
    if (!passesFilter(line, filter)) continue;
    for (const match of line.message.matchAll(pattern)) {
      matches.push({ line: line.line, start: match.index, end: match.index + match[0].length });
      if (matches.length >= MAX_MATCHES) return matches;
    }
  }
  return matches;
}

/** The number of lines by level, and the attempts, of what is in memory. */
export function summarize(store: LogStore): {
  levels: ReadonlyMap<string, number>;
  attempts: readonly number[];
} {
  const levels = new Map<string, number>();
  const attempts = new Set<number>();
  for (const { level, attempt } of store.lines()) {
    levels.set(level, (levels.get(level) ?? 0) + 1);
    if (attempt > 0) attempts.add(attempt);
  }
  return { levels, attempts: [...attempts].sort((one, other) => one - other) };
}

/** The lines that a link names: `#L120` or `#L120-L130`. */
export function parseLineHash(hash: string): LineRange | undefined {
  const found = /^#?L(\d{1,9})(?:-L(\d{1,9}))?$/.exec(hash);
  if (!found) return undefined;
  const from = Number(found[1]);
  const to = found[2] === undefined ? from : Number(found[2]);
  return from < 1 || to < 1 ? undefined : { from: Math.min(from, to), to: Math.max(from, to) };
}

export const formatLineHash = ({ from, to }: LineRange): string =>
  from === to ? `L${from}` : `L${from}-L${to}`;

/** A line as text, for files and the clipboard. */
export const lineText = ({ time, attempt, level, message, data }: LogLine): string =>
  [
    time,
    level.toUpperCase().padEnd(5),
    `[${attempt}]`,
    message,
    ...(data && Object.keys(data).length > 0 ? [JSON.stringify(data)] : []),
  ].join(' ');
