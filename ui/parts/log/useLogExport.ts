import { useEffect, useRef, useState } from 'react';
import { copyText, downloadText } from '../clipboard.ts';
import { formatNumberOf } from '../format.ts';
import { problemFields } from '../problems.ts';
import { collectLines } from './collect.ts';
import type { LogSource } from './logReader.ts';
import type { LineRange, LogLine, LogStore } from './logStore.ts';
import { lineText, passesFilter, type LogFilter } from './rows.ts';

type Options = {
  store: LogStore;
  source: LogSource;
  filter: LogFilter;
  selected: LineRange | undefined;
  fileName: string;
};

const SHOWN_MS = 3_000;

/** Copies the selected lines, or those that are shown, and downloads all; what is not in memory is read. */
export function useLogExport({ store, source, filter, selected, fileName }: Options) {
  const [note, setNote] = useState<string>();
  const stopped = useRef<AbortSignal>(undefined);
  useEffect(() => {
    const controller = new AbortController();
    stopped.current = controller.signal;
    return () => controller.abort();
  }, []);

  async function run(
    isWanted: (line: LogLine) => boolean,
    finish: (lines: string[]) => Promise<string> | string,
  ): Promise<void> {
    const signal = stopped.current ?? AbortSignal.abort();
    try {
      const onProgress = (part: number) => setNote(`Reading ${Math.round(part * 100)} %`);
      const lines = await collectLines(store, source, signal, onProgress);
      setNote(await finish(lines.filter(isWanted).map(lineText)));
    } catch (error) {
      if (signal.aborted) return;
      setNote(problemFields(error).title);
    }
    setTimeout(() => setNote(undefined), SHOWN_MS);
  }

  const isShown = (line: LogLine): boolean =>
    selected ? line.line >= selected.from && line.line <= selected.to : passesFilter(line, filter);

  return {
    note,
    copy: () =>
      void run(isShown, async (lines) =>
        (await copyText(lines.join('\n')))
          ? `Copied ${formatNumberOf(lines.length, 'line')}`
          : 'Could not copy',
      ),
    download: () =>
      void run(
        () => true,
        (lines) => {
          downloadText(
            fileName,
            lines.map((line) => `${line}\n`),
          );
          return `Saved ${formatNumberOf(lines.length, 'line')}`;
        },
      ),
  };
}
