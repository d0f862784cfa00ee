import { memo, useLayoutEffect, useRef, type CSSProperties, type ReactNode } from 'react';
import { Exact } from '../Exact.tsx';
import { Icon } from '../icons.tsx';
import type { TreeRow } from './tree.ts';
import type { GridColumn } from './types.ts';
import classes from './DataGrid.module.css';

type TreePosition = Pick<
  TreeRow<unknown>,
  'level' | 'position' | 'siblings' | 'isExpandable' | 'isExpanded'
>;

type Props<Row> = {
  row: Row;
  index: number;
  top: number;
  columns: readonly GridColumn<Row>[];
  /** The column that has the focus of the grid, or -1. */
  focusColumn: number;
  selectable: boolean;
  isSelected: boolean;
  name: string;
  tree?: TreePosition | undefined;
  isOpenable: boolean;
};

const CONTROLS = 'a[href], button, input, select, textarea, summary';

const treeAttributes = ({ level, position, siblings, isExpandable, isExpanded }: TreePosition) => ({
  'aria-level': level,
  'aria-posinset': position,
  'aria-setsize': siblings,
  ...(isExpandable && { 'aria-expanded': isExpanded }),
});

function Twist({ level, isExpandable, isExpanded }: TreePosition) {
  const indent: CSSProperties = { marginLeft: (level - 1) * 16 };
  if (!isExpandable) return <span className={classes.twist} style={indent} />;
  return (
    <button
      type="button"
      tabIndex={-1}
      className={classes.twist}
      style={indent}
      data-twist
      aria-label={isExpanded ? 'Close' : 'Open'}
    >
      <Icon name={isExpanded ? 'chevronDown' : 'chevronRight'} size={14} />
    </button>
  );
}

/** What is only text may be of others. */
const Cell = ({ content }: { content: ReactNode }) =>
  typeof content === 'string' ? <Exact text={content} /> : content;

function Row<Row>(props: Props<Row>) {
  const { row, index, top, columns, focusColumn, selectable, isSelected, name, tree } = props;
  const element = useRef<HTMLDivElement>(null);
  // The grid has one stop for Tab; Enter uses the control of a cell.
  useLayoutEffect(() => {
    for (const control of element.current?.querySelectorAll<HTMLElement>(CONTROLS) ?? [])
      control.tabIndex = -1;
  });
  const offset = selectable ? 1 : 0;
  const tabIndex = (column: number) => (focusColumn === column ? 0 : -1);
  return (
    <div
      ref={element}
      role="row"
      className={classes.row}
      style={{ transform: `translateY(${top}px)` }}
      aria-rowindex={index + 2}
      aria-selected={selectable ? isSelected : undefined}
      data-row={index}
      data-selected={isSelected || undefined}
      data-openable={props.isOpenable || undefined}
      data-striped={index % 2 === 1 || undefined}
      {...(tree && treeAttributes(tree))}
    >
      {selectable && (
        <div
          role="gridcell"
          className={classes.check}
          aria-colindex={1}
          data-column={0}
          tabIndex={tabIndex(0)}
        >
          <input
            type="checkbox"
            tabIndex={-1}
            checked={isSelected}
            readOnly
            data-check
            aria-label={`Select ${name}`}
          />
        </div>
      )}
      {columns.map((column, at) => (
        <div
          key={column.id}
          role="gridcell"
          className={classes.cell}
          aria-colindex={at + offset + 1}
          data-column={at + offset}
          data-align={column.align}
          tabIndex={tabIndex(at + offset)}
        >
          {at === 0 && tree && <Twist {...tree} />}
          <div className={classes.content}>
            <Cell content={column.cell(row)} />
          </div>
        </div>
      ))}
    </div>
  );
}

/** A row of a grid. It is drawn again only when something of it has changed, not when the grid scrolls. */
export const GridRow = memo(Row) as typeof Row;

/** A row that is still being read. */
export function SkeletonRow({ top, columns }: { top: number; columns: number }) {
  return (
    <div className={classes.row} style={{ transform: `translateY(${top}px)` }} aria-hidden="true">
      {Array.from({ length: columns }, (_, at) => (
        <div key={at} className={classes.cell}>
          <span className={classes.bone} data-width={at % 3} />
        </div>
      ))}
    </div>
  );
}
