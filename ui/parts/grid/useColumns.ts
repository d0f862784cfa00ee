import {
  columnOrderingFeature,
  columnResizingFeature,
  columnSizingFeature,
  columnVisibilityFeature,
  tableFeatures,
  useTable,
  type ColumnDef,
} from '@tanstack/react-table';
import { useEffect, useMemo, useState, type CSSProperties } from 'react';
import { DEFAULT_WIDTH, leastWidth, shownColumns, trackList } from './columns.ts';
import type { GridColumn } from './types.ts';
import { useWidthStore } from './widths.ts';

const FEATURES = tableFeatures({
  columnOrderingFeature,
  columnResizingFeature,
  columnSizingFeature,
  columnVisibilityFeature,
});

type Definition = ColumnDef<typeof FEATURES, object>;

/** Rows are drawn by the grid itself, which costs half as much: the table has columns only. */
const NO_ROWS: object[] = [];

const LEAST_WIDTH = 48;
const STEP = 16;

export type ShownColumns<Row> = {
  columns: readonly GridColumn<Row>[];
  /** Sets the tracks of the rows and the width below which the grid scrolls sideways. */
  style: CSSProperties;
  /** Starts changing the width of a column, which is `shownWidth` now, with the pointer. */
  startResize: (id: string, event: Event, shownWidth: number) => void;
  /** Changes the width of a column by steps, with the keyboard; 0 takes its own width back. */
  resizeBy: (id: string, steps: number, shownWidth: number) => void;
  resizing: string | undefined;
};

/** A table that knows the columns, which of them are shown, in which order, and how wide they are. */
function useColumnTable<Row>(
  list: string,
  all: readonly GridColumn<Row>[],
  chosen: readonly string[] | undefined,
  width: number,
) {
  const columns = useMemo(
    () =>
      all.map(({ id, header, width: size = DEFAULT_WIDTH }): Definition => ({
        id,
        header,
        size,
        minSize: LEAST_WIDTH,
      })),
    [all],
  );
  const columnOrder = useMemo(
    () => shownColumns(all, chosen, width).map(({ id }) => id),
    [all, chosen, width],
  );
  const columnVisibility = useMemo(
    () => Object.fromEntries(all.map(({ id }) => [id, columnOrder.includes(id)])),
    [all, columnOrder],
  );
  const store = useWidthStore();
  const [columnSizing] = useState(() => store.read(list));
  const table = useTable(
    {
      features: FEATURES,
      columns,
      data: NO_ROWS,
      initialState: { columnSizing },
      state: { columnVisibility, columnOrder },
      columnResizeMode: 'onChange',
    },
    ({ columnSizing, columnResizing }) => ({ columnSizing, columnResizing }),
  );
  const { columnSizing: sizes, columnResizing } = table.state;
  useEffect(() => {
    // While a column is dragged, it changes with every move.
    if (columnResizing.isResizingColumn === false && sizes !== columnSizing)
      store.write(list, sizes);
  }, [store, list, sizes, columnSizing, columnResizing.isResizingColumn]);
  return table;
}

/**
 * The columns that are shown in a grid of `width` pixels, with the widths that the user has set for the `list`.
 * `selectWidth` is the width of the column before them that selects, or 0.
 */
export function useColumns<Row>(
  list: string,
  all: readonly GridColumn<Row>[],
  chosen: readonly string[] | undefined,
  width: number,
  selectWidth: number,
): ShownColumns<Row> {
  const table = useColumnTable(list, all, chosen, width - selectWidth);
  const { columnSizing, columnResizing } = table.state;
  const byId = useMemo(() => new Map(all.map((column) => [column.id, column])), [all]);
  const visible = table.getVisibleLeafColumns();
  const order = visible.map(({ id }) => id).join(' ');
  const columns = useMemo(
    () => order.split(' ').flatMap((id) => byId.get(id) ?? []),
    [order, byId],
  );
  const style = useMemo(() => {
    const tracks = trackList(columns, columnSizing);
    return {
      '--grid-tracks': selectWidth > 0 ? `${selectWidth}px ${tracks}` : tracks,
      minWidth: leastWidth(columns, columnSizing) + selectWidth,
    };
  }, [columns, columnSizing, selectWidth]);
  return {
    columns,
    style,
    startResize: (id, event, shownWidth) => {
      // Otherwise a column that has got free space would jump to its least width first.
      table.setColumnSizing((old) => ({ ...old, [id]: shownWidth }));
      const header = table.getFlatHeaders().find(({ column }) => column.id === id);
      header?.getResizeHandler()(event);
    },
    resizeBy: (id, steps, shownWidth) =>
      table.setColumnSizing((old) => {
        const { [id]: _own, ...others } = old;
        if (steps === 0) return others;
        return { ...others, [id]: Math.max(LEAST_WIDTH, shownWidth + steps * STEP) };
      }),
    resizing: columnResizing.isResizingColumn || undefined,
  };
}
