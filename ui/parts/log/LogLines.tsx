import { useVirtualizer } from '@tanstack/react-virtual';
import { Button } from '@mantine/core';
import {
  useCallback,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
  type KeyboardEvent,
  type RefObject,
} from 'react';
import { formatNumberOf } from '../format.ts';
import { Icon } from '../icons.tsx';
import { usePreferences } from '../preferences.tsx';
import { LogLine } from './LogLine.tsx';
import type { LineRange, LogStore } from './logStore.ts';
import type { LogFilter, LogRow, LogRows } from './rows.ts';
import { useFollow } from './useFollow.ts';
import type { LogSearch } from './useLogSearch.ts';
import classes from './LogView.module.css';

type Props = {
  store: LogStore;
  rows: LogRows;
  label: string;
  search: LogSearch;
  selected: LineRange | undefined;
  onSelect: (range: LineRange) => void;
  wrap: boolean;
  isLive: boolean;
  isBusy: boolean;
  startsAtEnd: boolean;
  /** The line at the top of the view stays there when this changes. */
  filter: LogFilter;
  /** Which lines are in view, also those that are not read yet. */
  onView: (range: LineRange) => void;
};

const ROW_HEIGHT = 20;
const OVERSCAN = 30;

const firstLine = (row: LogRow): number => (row.kind === 'line' ? row.line : row.from);
const lastLine = (row: LogRow): number => (row.kind === 'line' ? row.line : row.to);

const isWithin = (line: number, range: LineRange | undefined): boolean =>
  range !== undefined && line >= range.from && line <= range.to;

/** The rows in view. Their heights are measured only where they differ. */
function useLogRows(
  scroller: RefObject<HTMLDivElement | null>,
  rows: LogRows,
  { wrap, isMeasured }: { wrap: boolean; isMeasured: boolean },
) {
  // oxlint-disable-next-line react/incompatible-library -- nothing that it returns is memoized
  const virtualizer = useVirtualizer({
    count: rows.count,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT,
    overscan: OVERSCAN,
    getItemKey: (index) => {
      const row = rows.rowAt(index);
      return row.kind === 'line' ? row.line : -row.from;
    },
  });
  useLayoutEffect(() => virtualizer.measure(), [virtualizer, wrap, isMeasured]);
  const showLine = useCallback(
    (line: number) => virtualizer.scrollToIndex(rows.indexOf(line), { align: 'center' }),
    [virtualizer, rows],
  );
  const scrollTo = useCallback(
    (index: number) => virtualizer.scrollToIndex(index, { align: 'start' }),
    [virtualizer],
  );
  return { virtualizer, showLine, scrollTo };
}

/** Opens the log at the line that the address names, once it is known to exist. */
function useStartLine(
  from: number | undefined,
  count: number,
  showLine: (line: number) => void,
): void {
  const shown = useRef<number>(undefined);
  useLayoutEffect(() => {
    if (from === undefined || count === 0 || shown.current === from) return;
    const isFirst = shown.current === undefined;
    shown.current = from;
    if (isFirst) showLine(from);
  }, [from, count, showLine]);
}

/** The arrows move from the number of a line to the next one. */
function moveBetweenLines(event: KeyboardEvent<HTMLElement>, showLine: (line: number) => void) {
  const { key, target, currentTarget } = event;
  const by = { ArrowDown: 1, ArrowUp: -1 }[key];
  const isNumber = target instanceof HTMLElement && target.dataset.line !== undefined;
  if (by === undefined || !isNumber) return;
  event.preventDefault();
  const links = [...currentTarget.querySelectorAll<HTMLElement>('[data-line]')];
  const next = links[links.indexOf(target) + by];
  if (!next) return;
  next.focus({ preventScroll: true });
  const { top, bottom } = next.getBoundingClientRect();
  const area = currentTarget.getBoundingClientRect();
  if (top < area.top || bottom > area.bottom) showLine(Number(next.dataset.line));
}

function useOpenLines() {
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const toggle = useCallback(
    (line: number) =>
      setOpen((old) => {
        const next = new Set(old);
        if (!next.delete(line)) next.add(line);
        return next;
      }),
    [],
  );
  return { open, toggle };
}

/** Passes on which lines are in view. */
function useView(rows: LogRows, indexes: readonly number[], onView: (range: LineRange) => void) {
  const first = indexes[0];
  const last = indexes.at(-1);
  const from = first === undefined ? 1 : firstLine(rows.rowAt(first));
  const to = last === undefined ? 1 : lastLine(rows.rowAt(last));
  useEffect(() => onView({ from, to }), [onView, from, to]);
  return from;
}

/** Another filter keeps the line at the top of the view, or the next one that passes it. */
function useKeptLine(
  filter: LogFilter,
  { rows, top }: { rows: LogRows; top: number },
  scrollTo: (index: number) => void,
): void {
  const last = useRef({ filter, top });
  useLayoutEffect(() => {
    const before = last.current;
    last.current = { filter, top };
    if (before.filter !== filter) scrollTo(rows.indexOf(before.top));
  }, [filter, rows, top, scrollTo]);
}

/** A step of the search moves the view to its match; new lines do not. */
function useShowMatch({ current }: LogSearch, goTo: (line: number) => void): void {
  const latest = useRef(goTo);
  useEffect(() => void (latest.current = goTo));
  const line = current?.line;
  const start = current?.start;
  useEffect(() => {
    if (line !== undefined) latest.current(line);
  }, [line, start]);
}

type RowProps = Pick<Props, 'store' | 'search' | 'selected' | 'onSelect'> & {
  row: LogRow;
  isOpen: boolean;
  isCursor: boolean;
  onToggle: (line: number) => void;
};

function RowContent({ store, search, selected, onSelect, row, ...props }: RowProps) {
  const { utc } = usePreferences();
  const line = row.kind === 'line' ? store.get(row.line) : undefined;
  const from = selected?.from;
  const select = useCallback(
    (to: number, isRange: boolean) => {
      const start = isRange ? (from ?? to) : to;
      onSelect({ from: Math.min(start, to), to: Math.max(start, to) });
    },
    [from, onSelect],
  );
  if (!line)
    return (
      <span className={classes.missing}>
        {row.kind === 'line' ? row.line : `${row.from} to ${row.to}`} …
      </span>
    );
  const current = search.current?.line === line.line ? search.current : undefined;
  return (
    <LogLine
      {...props}
      line={line}
      utc={utc}
      matches={search.byLine.get(line.line)}
      current={current}
      onSelect={select}
    />
  );
}

/** The rows in view, where they are, and what moves them. */
function useLogView(props: Props) {
  const { rows, search, selected, wrap, isLive, startsAtEnd, onView } = props;
  const scrollerRef = useRef<HTMLDivElement>(null);
  const { open, toggle } = useOpenLines();
  const isMeasured = wrap || open.size > 0;
  const { virtualizer, showLine, scrollTo } = useLogRows(scrollerRef, rows, { wrap, isMeasured });
  const items = virtualizer.getVirtualItems();
  const height = virtualizer.getTotalSize();
  const follow = useFollow({ scrollerRef, rows: rows.count, height, isLive, startsAtEnd });
  const { release } = follow;
  const goTo = useCallback(
    (line: number) => {
      release();
      showLine(line);
    },
    [release, showLine],
  );
  const indexes = items.map(({ index }) => index);
  const shownTop = virtualizer.range ? firstLine(rows.rowAt(virtualizer.range.startIndex)) : 1;
  useKeptLine(props.filter, { rows, top: shownTop }, scrollTo);
  const top = useView(rows, indexes, onView);
  useStartLine(selected?.from, rows.count, goTo);
  useShowMatch(search, goTo);
  const isInView = indexes.some((index) => firstLine(rows.rowAt(index)) === selected?.from);
  return {
    scrollerRef,
    items,
    height,
    follow,
    showLine,
    open,
    toggle,
    measure: isMeasured ? virtualizer.measureElement : undefined,
    /** The line whose number takes the focus. */
    cursor: isInView ? selected?.from : top,
  };
}

/** The lines of a log that are in view, and the button that goes to the new ones. */
export function LogLines(props: Props) {
  const { store, rows, label, selected, isBusy } = props;
  const view = useLogView(props);
  const { scrollerRef, follow } = view;
  return (
    <div className={classes.area}>
      <div
        ref={scrollerRef}
        className={classes.scroller}
        role="log"
        aria-live="off"
        aria-label={label}
        aria-busy={isBusy}
        tabIndex={0}
        onScroll={follow.onScroll}
        onKeyDown={(event) => moveBetweenLines(event, view.showLine)}
      >
        <div className={classes.canvas} style={{ height: view.height }}>
          {view.items.map(({ index, start, key }) => {
            const row = rows.rowAt(index);
            const line = firstLine(row);
            return (
              <div
                key={key}
                ref={view.measure}
                data-index={index}
                className={classes.row}
                style={{ transform: `translateY(${start}px)` }}
                data-level={row.kind === 'line' ? store.get(line)?.level : undefined}
                data-selected={(row.kind === 'line' && isWithin(line, selected)) || undefined}
              >
                <RowContent
                  {...props}
                  row={row}
                  isOpen={view.open.has(line)}
                  isCursor={line === view.cursor}
                  onToggle={view.toggle}
                />
              </div>
            );
          })}
        </div>
      </div>
      {follow.newRows > 0 && (
        <Button
          className={classes.newLines}
          onClick={follow.resume}
          leftSection={<Icon name="arrowDown" size={14} />}
        >
          {formatNumberOf(follow.newRows, 'new line')}
        </Button>
      )}
    </div>
  );
}
