import type { KeyboardEvent } from 'react';
import { Icon } from '../icons.tsx';
import { directionOf, nextSort } from './sorting.ts';
import type { GridColumn } from './types.ts';
import type { ShownColumns } from './useColumns.ts';
import classes from './DataGrid.module.css';

type Props<Row> = {
  shown: ShownColumns<Row>;
  sort: string | undefined;
  onSort: ((sort: string | undefined) => void) | undefined;
  /** The column that has the focus of the grid, or -1. */
  focusColumn: number;
  selectable: boolean;
  /** How many of the listed rows are selected. */
  selected: 'all' | 'some' | 'none';
};

type CellProps<Row> = Omit<Props<Row>, 'selectable' | 'selected' | 'focusColumn'> & {
  column: GridColumn<Row>;
  position: number;
  tabIndex: number;
};

/** The width of the column in whose header something has happened. */
const widthOf = ({ currentTarget }: { currentTarget: Element }): number =>
  currentTarget.closest('[role=columnheader]')?.getBoundingClientRect().width ?? 0;

const ARROWS = { ascending: 'arrowUp', descending: 'arrowDown' } as const;

function HeaderCell<Row>({ column, position, tabIndex, shown, sort, onSort }: CellProps<Row>) {
  const { id, header, align, sort: names } = column;
  const direction = directionOf(names, sort);
  const isSortable = names !== undefined && onSort !== undefined;
  /** Alt and an arrow change the width, as the handle does with the pointer. */
  const resize = (event: KeyboardEvent<HTMLElement>) => {
    const steps = { ArrowLeft: -1, ArrowRight: 1, Backspace: 0 }[event.key];
    if (!event.altKey || steps === undefined) return;
    event.preventDefault();
    shown.resizeBy(id, steps, widthOf(event));
  };
  const focusable = { tabIndex, 'data-focus': true, onKeyDown: resize };
  return (
    <div
      role="columnheader"
      className={classes.header}
      aria-colindex={position + 1}
      aria-sort={direction}
      data-column={position}
      data-align={align}
      {...(!isSortable && focusable)}
    >
      {isSortable ? (
        <button
          type="button"
          className={classes.sort}
          onClick={() => onSort(nextSort(names, sort))}
          {...focusable}
        >
          <span className={classes.content}>{header}</span>
          <span className={classes.arrow} data-sorted={direction !== undefined || undefined}>
            <Icon name={direction === undefined ? 'arrowsUpDown' : ARROWS[direction]} size={12} />
          </span>
        </button>
      ) : (
        <span className={classes.content}>{header}</span>
      )}
      {/* For the pointer; the keyboard has Alt and the arrows. */}
      <span
        className={classes.handle}
        data-active={shown.resizing === id || undefined}
        onMouseDown={(event) => shown.startResize(id, event.nativeEvent, widthOf(event))}
        onTouchStart={(event) => shown.startResize(id, event.nativeEvent, widthOf(event))}
        onDoubleClick={() => shown.resizeBy(id, 0, 0)}
        aria-hidden="true"
      />
    </div>
  );
}

/** The header of a grid. It stays in view, sorts, and changes the widths of columns. */
export function GridHeader<Row>(props: Props<Row>) {
  const { shown, selectable, selected, focusColumn } = props;
  const offset = selectable ? 1 : 0;
  return (
    <div role="rowgroup" className={classes.head}>
      <div role="row" className={classes.headRow} aria-rowindex={1} data-row={-1}>
        {selectable && (
          <div role="columnheader" className={classes.check} aria-colindex={1} data-column={0}>
            <input
              type="checkbox"
              tabIndex={focusColumn === 0 ? 0 : -1}
              checked={selected === 'all'}
              ref={(box) => {
                if (box) box.indeterminate = selected === 'some';
              }}
              readOnly
              data-check-all
              data-focus
              aria-label="Select all rows that are loaded"
            />
          </div>
        )}
        {shown.columns.map((column, at) => (
          <HeaderCell
            key={column.id}
            {...props}
            column={column}
            position={at + offset}
            tabIndex={focusColumn === at + offset ? 0 : -1}
          />
        ))}
      </div>
    </div>
  );
}
