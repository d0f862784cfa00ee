import type { ReactNode } from 'react';
import type { Density } from '../list/search.ts';
import type { ColumnSpace } from './columns.ts';
import type { SortNames } from './sorting.ts';

/** A column of a grid. */
export type GridColumn<Row> = ColumnSpace & {
  header: string;
  cell: (row: Row) => ReactNode;
  align?: 'start' | 'end' | 'center' | undefined;
  /** The names by which the server sorts it; without them it cannot be sorted. */
  sort?: SortNames | undefined;
  /** The cell as text, for copies; without it the column is not copied. */
  text?: ((row: Row) => string) | undefined;
};

/** Rows below rows. The page keeps which are open. */
export type GridTree<Row> = {
  /** Children that are loaded; undefined while they are not. */
  childrenOf: (row: Row) => readonly Row[] | undefined;
  hasChildren: (row: Row) => boolean;
  expanded: ReadonlySet<string>;
  onExpandedChange: (expanded: ReadonlySet<string>) => void;
};

/** What a page passes to a grid. */
export type DataGridProps<Row> = {
  /** Names the grid for screen readers; the widths of its columns are remembered by it. */
  label: string;
  /** Undefined until they are read for the first time. */
  rows: readonly Row[] | undefined;
  rowKey: (row: Row) => string;
  /** What the box that selects a row is called. Default: its key. */
  rowName?: ((row: Row) => string) | undefined;
  /** The same array at each render, if the columns are the same. */
  columns: readonly GridColumn<Row>[];
  /** Ids of the columns to show, in order. Without it: those that fit. */
  chosen?: readonly string[] | undefined;
  sort?: string | undefined;
  onSort?: ((sort: string | undefined) => void) | undefined;
  /** Keys of the selected rows. Without it rows cannot be selected. */
  selection?: ReadonlySet<string> | undefined;
  onSelectionChange?: ((selection: ReadonlySet<string>) => void) | undefined;
  onOpen?: ((row: Row) => void) | undefined;
  hasMore?: boolean | undefined;
  /** Asks for the next rows; called once for each array of rows. */
  onEndReached?: (() => void) | undefined;
  /** The number of rows, if it is known, and those that are not read yet. */
  total?: number | undefined;
  loading?: boolean | undefined;
  error?: unknown;
  onRetry?: (() => void) | undefined;
  /** Shown when there are no rows. */
  empty?: ReactNode;
  density?: Density | undefined;
  tree?: GridTree<Row> | undefined;
  /** With another value the grid shows its start: it is another list, or has another order. */
  view?: string | undefined;
  /** The first row that this is true of is brought into view when it comes to be another one. */
  shownRow?: ((row: Row) => boolean) | undefined;
  /** The keys j, k, x and e work on the whole page. */
  main?: boolean | undefined;
};
