import { Button } from '@mantine/core';
import { useMemo, useState, type ReactNode } from 'react';
import { formatNumberOf } from '../format.ts';
import { NO_SELECTION, stillListed } from '../grid/selection.ts';
import { usePreferences } from '../preferences.tsx';
import { ColumnMenu } from './ColumnMenu.tsx';
import {
  countText,
  filterKeyOf,
  ListFilters,
  ListRows,
  OutdatedNotice,
  RefusedFilters,
  type ListProps,
} from './ListRows.tsx';
import { refusedOf } from './refused.ts';
import type { Density } from './search.ts';
import { useViewsMenu } from './viewsSlot.ts';
import classes from './ListPage.module.css';

export type ListPageProps<Row> = ListProps<Row> & {
  /** Beside the heading: which part of the records is listed. */
  views?: ReactNode;
  /** What can be done with selected rows; their ids, and what ends the selection. */
  bulk?: ((ids: ReadonlySet<string>, done: () => void) => ReactNode) | undefined;
  /** Parameters of the address that are no filters, beside those of all lists. */
  parameters?: readonly string[] | undefined;
  /** What there is to know of the columns and filters that are offered. */
  note?: string | undefined;
  /** Between the filters and the list. */
  children?: ReactNode;
};

/**
 * Selected ids. Those of another filter, and of rows that the list no longer has, are forgotten, so that
 * nothing unseen is changed.
 */
function useBulkSelection<Row>(props: ListPageProps<Row>) {
  const { list, rowKey } = props;
  const filterKey = filterKeyOf(props);
  const [state, setState] = useState<{ key: string; ids: ReadonlySet<string> }>({
    key: filterKey,
    ids: new Set(),
  });
  const chosen = state.key === filterKey ? state.ids : NO_SELECTION.keys;
  const ids = useMemo(() => stillListed(chosen, list.rows, rowKey), [chosen, list.rows, rowKey]);
  // A row that comes back is not selected again by itself.
  if (ids.size < chosen.size) setState({ key: filterKey, ids });
  return { ids, select: (next: ReadonlySet<string>) => setState({ key: filterKey, ids: next }) };
}

type Model<Row> = ListPageProps<Row> & {
  density: Density;
  ids: ReadonlySet<string>;
  select: (ids: ReadonlySet<string>) => void;
};

/** The filters, or what can be done with the selected rows, and the menu of columns. */
function Tools<Row>(props: Model<Row>) {
  const { list, search, onSearch, noun, bulk, columns, rowKey, density, ids, select } = props;
  const copied = () => {
    const rows = list.rows ?? [];
    return ids.size > 0 ? rows.filter((row) => ids.has(rowKey(row))) : rows;
  };
  const none = () => select(new Set());
  const isSelecting = bulk !== undefined && ids.size > 0;
  return (
    <div className={classes.tools}>
      <div className={classes.bars}>
        {/* The filters keep their height: the list must not move under the pointer that selects. */}
        <div className={classes.bar} data-hidden={isSelecting || undefined}>
          <ListFilters {...props} />
        </div>
        {bulk && (
          // Also without a selection: an open dialog stays when its rows leave the list.
          <div className={classes.bulk} role="group" aria-label="Selected" hidden={!isSelecting}>
            <strong>{formatNumberOf(ids.size, noun[0], noun[1])} selected</strong>
            {bulk(ids, none)}
            <Button variant="subtle" onClick={none}>
              Clear selection
            </Button>
          </div>
        )}
      </div>
      <ColumnMenu
        columns={columns}
        search={search}
        onSearch={onSearch}
        density={density}
        rows={copied}
      />
    </div>
  );
}

/** Filters and grid. */
const Rows = <Row,>(props: Model<Row>) => (
  <>
    <Tools {...props} />
    {props.note !== undefined && <p className={classes.note}>{props.note}</p>}
    <OutdatedNotice list={props.list} />
    {props.children}
    <div className={classes.grid}>
      <ListRows
        main
        {...props}
        {...(props.bulk && { selection: props.ids, onSelectionChange: props.select })}
      />
    </div>
  </>
);

/** A page with a list of records: heading, filters, count and grid. All of its state is in the address. */
export function ListPage<Row>(props: ListPageProps<Row>) {
  const { title, noun, list, search, onSearch } = props;
  const refused = refusedOf(props.filters, search, list.error, props.parameters);
  const renderViews = useViewsMenu();
  const preferences = usePreferences();
  const selection = useBulkSelection(props);
  const density = search.density ?? preferences.density;
  const isWhole = refused.length === 0;
  return (
    <div className={classes.page}>
      <div className={classes.top}>
        <h1 className={classes.title}>{title}</h1>
        <span className={classes.count} aria-live="polite">
          {isWhole && list.count && countText(list.count, noun)}
        </span>
        {props.views}
        {renderViews({ search, onSearch })}
        {/* Exports would have more than the address asks for, too. */}
        {isWhole && <div className={classes.actions}>{props.actions}</div>}
      </div>
      {isWhole ? (
        <Rows {...props} {...selection} density={density} />
      ) : (
        <RefusedFilters {...{ refused, noun, search, onSearch }} />
      )}
    </div>
  );
}
