import { useVirtualizer, defaultRangeExtractor, type Range } from '@tanstack/react-virtual';
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, type RefObject } from 'react';
import type { Density } from '../list/search.ts';
import { usePreferences } from '../preferences.tsx';
import { ProblemNote } from '../ProblemNote.tsx';
import { GridHeader } from './GridHeader.tsx';
import { GridRow, SkeletonRow } from './GridRow.tsx';
import { selectedPart } from './selection.ts';
import { flattenTree, type TreeRow } from './tree.ts';
import type { DataGridProps } from './types.ts';

export type { DataGridProps } from './types.ts';
import { useColumns } from './useColumns.ts';
import { useGridEvents } from './useGridEvents.ts';
import { useFocusedCell, useGridFocus } from './useGridFocus.ts';
import { useWidth } from './useWidth.ts';
import classes from './DataGrid.module.css';

const ROW_HEIGHT: Readonly<Record<Density, number>> = { compact: 28, comfortable: 36 };
const HEADER_HEIGHT = 30;
const SELECT_WIDTH = 36;
/** Rows drawn beyond the view: what a fast wheel moves within a frame. */
const OVERSCAN = 16;
/** Rows of bones: at first, and after the last row while more are to come. */
const FIRST_BONES = 12;
const MORE_BONES = 12;
/** How many rows before the end more are asked for. */
const AHEAD = 60;

/** The rows as they are drawn, without a copy of a list that is no tree. */
function useRows<Row>({
  rows = [],
  rowKey,
  tree,
}: Pick<DataGridProps<Row>, 'rows' | 'rowKey' | 'tree'>) {
  const flat = useMemo(
    () => (tree ? flattenTree(rows, { ...tree, rowKey }) : undefined),
    [rows, rowKey, tree],
  );
  return {
    count: flat?.length ?? rows.length,
    rowAt: useCallback((index: number) => (flat ? flat[index]?.row : rows[index]), [flat, rows]),
    treeAt: (index: number): TreeRow<Row> | undefined => flat?.[index],
    order: () => (flat ? flat.map(({ key }) => key) : rows.map(rowKey)),
  };
}

/**
 * Asks for more rows when the last ones come into view: once for each array of rows, not for each number
 * of them. Another list may have as many, and what was asked for during a refresh is not read.
 */
function useEndReached<Row>(
  {
    rows,
    hasMore,
    onEndReached,
    error,
  }: Pick<DataGridProps<Row>, 'rows' | 'hasMore' | 'onEndReached' | 'error'>,
  count: number,
  lastShown: number,
): void {
  const asked = useRef<readonly Row[]>(undefined);
  const isNear = hasMore === true && count > 0 && lastShown >= count - AHEAD;
  const isFailed = error !== undefined && error !== null;
  useEffect(() => {
    if (!isNear || isFailed || asked.current === rows) return;
    asked.current = rows;
    onEndReached?.();
  }, [isNear, isFailed, rows, onEndReached]);
  // After a failure the same rows may be asked for again.
  useEffect(() => {
    if (isFailed) asked.current = undefined;
  }, [isFailed]);
}

/** The rows in view and the focused row, and the way to bring a row into view. */
function useVisibleRows(
  scroller: RefObject<HTMLDivElement | null>,
  count: number,
  rowHeight: number,
  focusedRow: number,
) {
  // The focus does not get lost when it is scrolled out of view.
  const rangeExtractor = useCallback(
    (range: Range): number[] => {
      const indexes = defaultRangeExtractor(range);
      const isDrawn = focusedRow < 0 || focusedRow >= range.count || indexes.includes(focusedRow);
      return isDrawn ? indexes : [...indexes, focusedRow].sort((one, other) => one - other);
    },
    [focusedRow],
  );
  // oxlint-disable-next-line react/incompatible-library -- nothing that it returns is memoized
  const virtualizer = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: OVERSCAN,
    scrollMargin: HEADER_HEIGHT,
    scrollPaddingStart: HEADER_HEIGHT,
    rangeExtractor,
  });
  useLayoutEffect(() => virtualizer.measure(), [virtualizer, rowHeight]);
  const scrollTo = useCallback((row: number) => virtualizer.scrollToIndex(row), [virtualizer]);
  const shownHeight = virtualizer.scrollRect?.height ?? 300;
  return {
    items: virtualizer.getVirtualItems(),
    height: virtualizer.getTotalSize(),
    last: virtualizer.range?.endIndex ?? 0,
    page: Math.max(1, Math.floor(shownHeight / rowHeight) - 2),
    scrollTo,
  };
}

/** Shows the start of another list, as a new page would. */
function useStart(scroller: RefObject<HTMLDivElement | null>, view: string | undefined): void {
  const shown = useRef(view);
  useLayoutEffect(() => {
    if (shown.current === view) return;
    shown.current = view;
    scroller.current?.scrollTo({ top: 0 });
  }, [scroller, view]);
}

/** Brings the row that a page points to into view, once for each such row. */
function useShownRow<Row>(
  { rowKey, shownRow }: Pick<DataGridProps<Row>, 'rowKey' | 'shownRow'>,
  { count, rowAt }: { count: number; rowAt: (index: number) => Row | undefined },
  scrollTo: (row: number) => void,
): void {
  const shown = useRef<string>(undefined);
  useEffect(() => {
    if (!shownRow) return;
    for (let index = 0; index < count; index += 1) {
      const row = rowAt(index);
      if (row === undefined || !shownRow(row)) continue;
      if (rowKey(row) !== shown.current) scrollTo(index);
      shown.current = rowKey(row);
      return;
    }
    shown.current = undefined;
  }, [shownRow, count, rowAt, rowKey, scrollTo]);
}

/** Everything that a grid draws and reacts to. */
function useGrid<Row>(props: DataGridProps<Row>) {
  const { rows, rowKey, columns: all, chosen, selection, hasMore = false, loading = false } = props;
  const preferences = usePreferences();
  const rowHeight = ROW_HEIGHT[props.density ?? preferences.density];
  const scroller = useRef<HTMLDivElement>(null);
  const width = useWidth(scroller);
  const selectWidth = selection === undefined ? 0 : SELECT_WIDTH;
  const shown = useColumns(props.label, all, chosen, width, selectWidth);
  const columnCount = shown.columns.length + (selection === undefined ? 0 : 1);
  const { count, rowAt, treeAt, order } = useRows(props);
  const bones = rows === undefined ? (loading ? FIRST_BONES : 0) : hasMore ? MORE_BONES : 0;
  const keyAt = useCallback(
    (index: number) => {
      const row = index < 0 ? undefined : rowAt(index);
      return row === undefined ? undefined : rowKey(row);
    },
    [rowAt, rowKey],
  );
  const focus = useGridFocus({ rows: count, columns: columnCount }, keyAt);
  const visible = useVisibleRows(scroller, count + bones, rowHeight, focus.at.row);
  useFocusedCell(scroller, focus, visible.scrollTo);
  useStart(scroller, props.view);
  useShownRow(props, { count, rowAt }, visible.scrollTo);
  useEndReached(props, count, visible.last);
  const size = { rows: count, columns: columnCount, page: visible.page };
  const shownInOrder = shown.columns;
  const access = { rowAt, treeAt, keyAt, order };
  const events = useGridEvents({ ...props, ...access, scroller, focus, size, shown: shownInOrder });
  return { ...access, scroller, shown, columnCount, count, visible, focus, events, rowHeight };
}

type Grid<Row> = ReturnType<typeof useGrid<Row>>;

/** The rows in view, and rows of bones where rows are still read. */
function GridBody<Row>({ grid, ...props }: DataGridProps<Row> & { grid: Grid<Row> }) {
  const { rowKey, rowName = rowKey, selection, onOpen } = props;
  const { visible, count, rowAt, treeAt, focus, shown, columnCount, rowHeight } = grid;
  const style = { height: visible.height, '--row-height': `${rowHeight}px` };
  return (
    <div role="rowgroup" className={classes.body} style={style}>
      {visible.items.map(({ index, start }) => {
        const row = index < count ? rowAt(index) : undefined;
        const top = start - HEADER_HEIGHT;
        if (row === undefined)
          return <SkeletonRow key={`bone ${index}`} top={top} columns={columnCount} />;
        const key = rowKey(row);
        return (
          <GridRow
            key={key}
            row={row}
            index={index}
            top={top}
            columns={shown.columns}
            focusColumn={focus.at.row === index ? focus.at.column : -1}
            selectable={selection !== undefined}
            isSelected={selection?.has(key) ?? false}
            name={rowName(row)}
            tree={treeAt(index)}
            isOpenable={onOpen !== undefined}
          />
        );
      })}
    </div>
  );
}

/** The number of rows with those that are not read yet, as `aria-rowcount` has it; -1 if unknown. */
function rowCount<Row>({ hasMore = false, total }: DataGridProps<Row>, count: number): number {
  if (!hasMore) return count + 1;
  return total === undefined ? -1 : total + 1;
}

/**
 * A table of records for the keyboard, the pointer and screen readers. Only the rows in view are drawn;
 * old rows stay while new ones load.
 */
export function DataGrid<Row>(props: DataGridProps<Row>) {
  const { label, rows, selection, tree, hasMore = false, loading = false, error } = props;
  const grid = useGrid(props);
  const { scroller, shown, columnCount, count, focus, events, order } = grid;
  const hasError = error !== undefined && error !== null;
  const isEmpty = rows !== undefined && count === 0 && !hasMore && !hasError;
  const isInHeader = focus.at.row < 0 || count === 0;
  return (
    <div className={classes.frame}>
      {loading && rows !== undefined && <div className={classes.progress} role="presentation" />}
      {hasError && (
        <div className={classes.problem}>
          <ProblemNote problem={error} retry={props.onRetry} hasData={rows !== undefined} />
        </div>
      )}
      <div
        ref={scroller}
        className={classes.grid}
        role={tree ? 'treegrid' : 'grid'}
        aria-label={label}
        aria-rowcount={rowCount(props, count)}
        aria-colcount={columnCount}
        aria-multiselectable={selection !== undefined || undefined}
        aria-busy={loading || undefined}
        {...events}
      >
        <div className={classes.canvas} style={shown.style}>
          <GridHeader
            shown={shown}
            sort={props.sort}
            onSort={props.onSort}
            focusColumn={isInHeader ? focus.at.column : -1}
            selectable={selection !== undefined}
            selected={selection && selection.size > 0 ? selectedPart(selection, order()) : 'none'}
          />
          <GridBody {...props} grid={grid} />
        </div>
      </div>
      {isEmpty && props.empty}
    </div>
  );
}
