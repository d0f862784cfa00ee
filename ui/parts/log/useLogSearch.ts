import { useDeferredValue, useMemo, useState } from 'react';
import type { LogStore } from './logStore.ts';
import { findMatches, MAX_MATCHES, type LogFilter, type LogMatch } from './rows.ts';

type Options = {
  store: LogStore;
  version: number;
  filter: LogFilter;
  /** The first line in view: the search starts there. */
  topLine: number;
};

const groupByLine = (matches: readonly LogMatch[]): ReadonlyMap<number, LogMatch[]> => {
  const lines = new Map<number, LogMatch[]>();
  for (const match of matches) {
    const own = lines.get(match.line);
    if (own) own.push(match);
    else lines.set(match.line, [match]);
  }
  return lines;
};

/** The matches of a text, and the way from one to the next. */
export function useLogSearch({ store, version, filter, topLine }: Options) {
  const [text, setText] = useState('');
  const [chosen, setChosen] = useState<LogMatch>();
  const wanted = useDeferredValue(text);
  const matches = useMemo(
    () => findMatches(store, filter, wanted),
    // The store is the same object after a change: its version says that it has changed.
    // oxlint-disable-next-line react/exhaustive-deps
    [store, filter, wanted, version],
  );
  const byLine = useMemo(() => groupByLine(matches), [matches]);
  const found = chosen
    ? matches.findIndex(({ line, start }) => line === chosen.line && start === chosen.start)
    : -1;
  const nextOf = (by: 1 | -1): number => {
    if (found >= 0) return (found + by + matches.length) % matches.length;
    return Math.max(
      0,
      matches.findIndex(({ line }) => line >= topLine),
    );
  };
  return {
    text,
    onText: (next: string) => {
      setText(next);
      setChosen(undefined);
    },
    count: matches.length,
    isMore: matches.length >= MAX_MATCHES,
    /** The position of the match that the search is at, or -1 before the first step. */
    position: found,
    current: found >= 0 ? matches[found] : undefined,
    byLine,
    step: (by: 1 | -1) => {
      if (matches.length > 0) setChosen(matches[nextOf(by)]);
    },
  };
}

export type LogSearch = ReturnType<typeof useLogSearch>;
