import { useCallback, useMemo, useState } from 'react';
import { ProblemNote } from '../ProblemNote.tsx';
import { LogLines } from './LogLines.tsx';
import { LogToolbar } from './LogToolbar.tsx';
import type { LogSource } from './logReader.ts';
import type { LineRange, LogStore } from './logStore.ts';
import { ALL_LINES, logRows, summarize, type LogFilter } from './rows.ts';
import { useLineHash } from './useLineHash.ts';
import { useLog, type Log } from './useLog.ts';
import { useLogExport } from './useLogExport.ts';
import { useLogSearch } from './useLogSearch.ts';
import classes from './LogView.module.css';

type Props = {
  /** The source is used from the first render on; another log gets another `key`. */
  source: LogSource;
  /** Names the log for screen readers. */
  label: string;
  /** The name of the file that is downloaded. */
  fileName: string;
  /** Where it opens, unless the address names a line. Default: at the end while it is followed. */
  start?: 'top' | 'end' | undefined;
  /** Shown instead of an empty log that has ended. */
  empty?: string | undefined;
};

const WRAP_KEY = 'holdfast-log-wrap';

function useWrap(): [boolean, (wrap: boolean) => void] {
  const [wrap, setWrap] = useState(() => {
    try {
      return localStorage.getItem(WRAP_KEY) === '1';
    } catch {
      return false;
    }
  });
  const change = (next: boolean) => {
    setWrap(next);
    try {
      localStorage.setItem(WRAP_KEY, next ? '1' : '0');
    } catch {
      // Without storage the choice holds until the page is left.
    }
  };
  return [wrap, change];
}

/** What is shown of a log: the rows that pass the filter, and what there is by level and attempt. */
function useShown({ store }: Log) {
  const [filter, setFilter] = useState<LogFilter>(ALL_LINES);
  const { version } = store;
  // The store is the same object after a change: its version says that it has changed.
  // oxlint-disable-next-line react/exhaustive-deps
  const rows = useMemo(() => logRows(store, filter), [store, filter, version]);
  // oxlint-disable-next-line react/exhaustive-deps
  const summary = useMemo(() => summarize(store), [store, version]);
  return { filter, setFilter, rows, summary };
}

/** A log that is read, followed, searched and linked to by its lines. Only what is in view is drawn. */
export function LogView(props: Props) {
  const log = useLog(props.source);
  if (!log) return <div className={classes.frame} aria-busy="true" />;
  return <OpenLog {...props} {...log} />;
}

type NoteProps = { store: LogStore; isEmpty: boolean; empty: string | undefined };

/** Says what is not there, and why. */
function Note({ store, isEmpty, empty = 'The log is empty.' }: NoteProps) {
  return (
    <>
      {store.first > 1 && (
        <p className={classes.note}>The lines before {store.first} are purged.</p>
      )}
      {isEmpty && <p className={classes.note}>{store.last === 0 ? empty : 'No line matches.'}</p>}
    </>
  );
}

function OpenLog(props: Props & Log) {
  const { source, label, fileName, start, empty, store, reader } = props;
  const { state, problem } = reader;
  const { filter, setFilter, rows, summary } = useShown(props);
  const [wrap, setWrap] = useWrap();
  const [selected, select] = useLineHash();
  const [topLine, setTopLine] = useState(1);
  const search = useLogSearch({ store, version: store.version, filter, topLine });
  const exported = useLogExport({ store, source, filter, selected, fileName });
  const onView = useCallback(
    (range: LineRange) => {
      setTopLine(range.from);
      reader.focus(range);
    },
    [reader],
  );
  const isLive = state === 'live' || state === 'waiting';
  const retry = state === 'failed' ? reader.retry : undefined;
  const isDone = state === 'ended' || state === 'failed';
  const isEmpty = rows.count === 0 && isDone;
  const lines = Math.max(store.last - store.first + 1, 0);
  return (
    <div className={classes.frame} data-wrap={wrap || undefined}>
      <LogToolbar
        search={search}
        isPartial={store.loaded < lines}
        filter={filter}
        onFilter={setFilter}
        levels={summary.levels}
        attempts={summary.attempts}
        state={state}
        lines={lines}
        wrap={wrap}
        onWrap={setWrap}
        onCopy={exported.copy}
        onDownload={exported.download}
        note={exported.note}
      />
      {problem && <ProblemNote problem={problem} retry={retry} hasData />}
      <Note store={store} isEmpty={isEmpty} empty={empty} />
      {!isEmpty && (
        <LogLines
          store={store}
          rows={rows}
          filter={filter}
          label={label}
          search={search}
          selected={selected}
          onSelect={select}
          wrap={wrap}
          isLive={isLive}
          isBusy={!isDone && !isLive}
          startsAtEnd={!selected && (start ?? (source.follow ? 'end' : 'top')) === 'end'}
          onView={onView}
        />
      )}
    </div>
  );
}
