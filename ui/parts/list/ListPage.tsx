import { Button } from '@mantine/core';
import { useEffect, useMemo, useState, type ReactNode } from 'react';
import { Empty } from '../Empty.tsx';
import { formatCount, formatNumberOf } from '../format.ts';
import { DataGrid, type DataGridProps } from '../grid/DataGrid.tsx';
import { usePreferences } from '../preferences.tsx';
import { ColumnMenu } from './ColumnMenu.tsx';
import { FilterBar } from './FilterBar.tsx';
import {
  activeFilters,
  splitValues,
  withoutFilters,
  type Density,
  type Filter,
  type ListSearch,
} from './search.ts';
import type { List, ListCount } from './useList.ts';
import classes from './ListPage.module.css';

export type ListPageProps<Row> = Pick<
  DataGridProps<Row>,
  'columns' | 'rowKey' | 'rowName' | 'onOpen' | 'tree'
> & {
  title: string;
  /** Beside the heading: what can be created. */
  actions?: ReactNode;
  /** Beside the heading: which part of the records is listed. */
  views?: ReactNode;
  /** What the list has, in the singular and the plural: `['job', 'jobs']`. */
  noun: readonly [string, string];
  list: List<Row>;
  filters: readonly Filter[];
  search: ListSearch;
  onSearch: (search: ListSearch) => void;
  /** Shown if there is nothing without a filter. */
  empty: ReactNode;
  /** What can be done with selected rows; their ids, and what ends the selection. */
  bulk?: ((ids: ReadonlySet<string>, done: () => void) => ReactNode) | undefined;
  /** Between the filters and the list. */
  children?: ReactNode;
};

/** The number of records, as exact as the service counts. */
export function countText(count: ListCount, [one, many]: readonly [string, string]): string {
  return count.exact
    ? formatNumberOf(count.value, one, many)
    : `more than ${formatCount(count.value)} ${many}`;
}

/** Selected ids; those of another filter are forgotten, so that nothing unseen is changed. */
function useBulkSelection(filterKey: string) {
  const [state, setState] = useState<{ key: string; ids: ReadonlySet<string> }>({
    key: filterKey,
    ids: new Set(),
  });
  const ids = state.key === filterKey ? state.ids : new Set<string>();
  return { ids, select: (next: ReadonlySet<string>) => setState({ key: filterKey, ids: next }) };
}

type Model<Row> = ListPageProps<Row> & {
  /** The active filters. */
  filterKey: string;
  density: Density;
  ids: ReadonlySet<string>;
  select: (ids: ReadonlySet<string>) => void;
};

/** The filters, or what can be done with the selected rows, and the menu of columns. */
function Tools<Row>(props: Model<Row>) {
  const { list, filters, search, onSearch, noun, bulk, columns, rowKey, density, ids, select } =
    props;
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
          <FilterBar
            filters={filters}
            search={search}
            onSearch={onSearch}
            facets={list.facets}
            names={list.names}
            onFacets={list.wantFacets}
          />
        </div>
        {isSelecting && (
          <div className={classes.bulk} role="group" aria-label="Selected">
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

function Rows<Row>(props: Model<Row>) {
  const { title, list, filters, search, onSearch, noun, empty, bulk, columns, density } = props;
  const chosen = useMemo(() => splitValues(search.columns), [search.columns]);
  const filtered = (
    <Empty
      kind="filtered"
      title={`No ${noun[1]} match the filters`}
      action={
        <Button variant="default" onClick={() => onSearch(withoutFilters(filters, search))}>
          Clear filters
        </Button>
      }
    />
  );
  return (
    <DataGrid
      main
      view={`${props.filterKey} ${search.sort ?? ''}`}
      label={title}
      rows={list.rows}
      rowKey={props.rowKey}
      rowName={props.rowName}
      columns={columns}
      chosen={chosen.length > 0 ? chosen : undefined}
      sort={search.sort}
      onSort={(sort) => onSearch({ ...search, sort })}
      onOpen={props.onOpen}
      tree={props.tree}
      {...(bulk && { selection: props.ids, onSelectionChange: props.select })}
      hasMore={list.hasMore}
      onEndReached={list.loadMore}
      total={list.count?.exact === true ? list.count.value : undefined}
      loading={list.loading}
      error={list.error}
      onRetry={list.retry}
      density={density}
      empty={activeFilters(filters, search).length === 0 ? empty : filtered}
    />
  );
}

/** Counts the values of the filters that are shown beside the list. */
function useInlineFacets(
  filters: readonly Filter[],
  wantFacets: (fields: readonly string[]) => void,
) {
  const inline = filters
    .filter((filter) => filter.kind === 'choice' && filter.inline === true && filter.facet === true)
    .map(({ id }) => id)
    .join(' ');
  useEffect(() => {
    if (inline !== '') wantFacets(inline.split(' '));
  }, [inline, wantFacets]);
}

/** A page with a list of records: heading, filters, count and grid. All of its state is in the address. */
export function ListPage<Row>(props: ListPageProps<Row>) {
  const { title, actions, noun, list, filters, search } = props;
  const preferences = usePreferences();
  const filterKey = JSON.stringify(
    activeFilters(filters, search).map(({ id }) => [id, search[id]]),
  );
  const selection = useBulkSelection(filterKey);
  const model = {
    ...props,
    ...selection,
    filterKey,
    density: search.density ?? preferences.density,
  };
  useInlineFacets(filters, list.wantFacets);
  return (
    <div className={classes.page}>
      <div className={classes.top}>
        <h1 className={classes.title}>{title}</h1>
        <span className={classes.count} aria-live="polite">
          {list.count && countText(list.count, noun)}
        </span>
        {props.views}
        <div className={classes.actions}>{actions}</div>
      </div>
      <Tools {...model} />
      {list.isOutdated && (
        <div className={classes.outdated} role="status">
          The list may have changed.
          <Button variant="default" onClick={list.refresh}>
            Show the present state
          </Button>
        </div>
      )}
      {props.children}
      <div className={classes.grid}>
        <Rows {...model} />
      </div>
    </div>
  );
}
