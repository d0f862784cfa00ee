import type { LogSource } from './logReader.ts';
import type { LogLine, LogStore } from './logStore.ts';

const READ_LINES = 1_000;

/**
 * All lines of a log from its first to its last known one, for a file or the clipboard: those in memory,
 * and the others from the source. `onProgress` gets the part that is done.
 */
export async function collectLines(
  store: LogStore,
  source: LogSource,
  signal: AbortSignal,
  onProgress: (part: number) => void,
): Promise<LogLine[]> {
  const { first, last } = store;
  const lines: LogLine[] = [];
  let next = first;
  while (next <= last) {
    const to = Math.min(last, next + READ_LINES - 1);
    const [gap] = store.gaps({ from: next, to });
    const page = gap
      ? await source.read(next, to - next + 1, signal)
      : { lines: [...store.lines({ from: next, to })], hasMore: false };
    for (const line of page.lines) if (line.line >= next && line.line <= to) lines.push(line);
    const reached = page.hasMore ? page.lines.at(-1)?.line : undefined;
    next = Math.min(reached ?? to, to) + 1;
    onProgress((next - first) / (last - first + 1));
  }
  return lines;
}
