import { Button } from '@mantine/core';
import { useEffect, useMemo, type ReactNode } from 'react';
import { Empty } from '../Empty.tsx';
import { formatCount, formatNumberOf } from '../format.ts';
import { DataGrid, type DataGridProps } from '../grid/DataGrid.tsx';
import { Exact } from '../Exact.tsx';
import { usePermissions } from '../permissions.tsx';
import { FilterBar } from './FilterBar.tsx';
import {
  activeFilters,
  splitValues,
  withoutFilters,
  type Filter,
  type ListSearch,
  type Refused,
} from './search.ts';
import type { List, ListCount } from './useList.ts';
import classes from './ListRows.module.css';

/** What a list needs, on a page of its own or in a section of another one. */
export type ListProps<Row> = Pick<
  DataGridProps<Row>,
  'columns' | 'rowKey' | 'rowName' | 'onOpen' | 'tree'
> & {
  title: string;
  /** Beside the heading: what can be created. */
  actions?: ReactNode;
  /** What the list has, in the singular and the plural: `['job', 'jobs']`. */
  noun: readonly [string, string];
  list: List<Row>;
  filters: readonly Filter[];
  search: ListSearch;
  onSearch: (search: ListSearch) => void;
  /** The permission with which the records are read, if it decides alone. */
  permission?: string | undefined;
  /** Shown if there is nothing without a filter, and nothing is left out of what the reader may see. */
  empty: ReactNode;
};

/** The number of records, as exact as the service counts. */
export function countText(count: ListCount, [one, many]: readonly [string, string]): string {
  return count.exact
    ? formatNumberOf(count.value, one, many)
    : `more than ${formatCount(count.value)} ${many}`;
}

/** The active filters as one text. */
export const filterKeyOf = ({
  filters,
  search,
}: Pick<ListProps<unknown>, 'filters' | 'search'>): string =>
  JSON.stringify(activeFilters(filters, search).map(({ id }) => [id, search[id]]));

/** Counts the values of the filters that are shown beside the list. */
function useInlineFacets<Row>({
  filters,
  list: { wantFacets },
}: Pick<ListProps<Row>, 'filters' | 'list'>): void {
  const inline = filters
    .filter((filter) => filter.kind === 'choice' && filter.inline === true && filter.facet === true)
    .map(({ id }) => id)
    .join(' ');
  useEffect(() => {
    if (inline !== '') wantFacets(inline.split(' '));
  }, [inline, wantFacets]);
}

/** The filters of a list, and their counts. */
export function ListFilters<Row>(props: ListProps<Row>) {
  const { filters, search, onSearch, list } = props;
  useInlineFacets(props);
  return (
    <FilterBar
      filters={filters}
      search={search}
      onSearch={onSearch}
      facets={list.facets}
      names={list.names}
      onFacets={list.wantFacets}
    />
  );
}

/** Says that a long list is not read again by itself. */
export function OutdatedNotice({ list }: { list: Pick<List<unknown>, 'isOutdated' | 'refresh'> }) {
  if (!list.isOutdated) return null;
  return (
    <div className={classes.outdated} role="status">
      The list may have changed.
      <Button variant="default" onClick={list.refresh}>
        Show the present state
      </Button>
    </div>
  );
}

type GridProps<Row> = Pick<
  DataGridProps<Row>,
  'main' | 'density' | 'selection' | 'onSelectionChange'
>;

/** Nothing for readers who do not see everything: there may be some. */
function Unseen({ noun, actions }: Pick<ListProps<unknown>, 'noun' | 'actions'>) {
  return (
    <Empty
      kind="hidden"
      title={`No ${noun[1]} that you may see`}
      detail="Your roles are for a part of the tenants, sites or devices. There may be others elsewhere."
      action={actions}
    />
  );
}

type RefusedProps = { refused: readonly Refused[] } & Pick<
  ListProps<unknown>,
  'noun' | 'search' | 'onSearch'
>;

/** Instead of the rows, which would be those of other filters: which of the filters cannot be used. */
export const RefusedFilters = ({ refused, noun: [, many], search, onSearch }: RefusedProps) => (
  <Empty
    kind="filtered"
    title={
      search.saved !== undefined && refused.some(({ isMissing }) => isMissing)
        ? 'A filter of this view no longer applies'
        : `The ${many} cannot be listed like this`
    }
    detail={
      <ul className={classes.refused}>
        {refused.map(({ id, label, text, detail }) => (
          <li key={id}>
            {label} “<Exact text={text} />” {detail}
          </li>
        ))}
      </ul>
    }
    action={refused.map(({ id, label }) => (
      <Button key={id} variant="default" onClick={() => onSearch({ ...search, [id]: undefined })}>
        List without {label}
      </Button>
    ))}
  />
);

/** The rows of a list, as its filters and order say. */
export function ListRows<Row>(props: ListProps<Row> & GridProps<Row>) {
  const { title, list, filters, search, onSearch, noun, empty } = props;
  const { canEverywhere } = usePermissions();
  const seesAll = props.permission === undefined || canEverywhere(props.permission);
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
      main={props.main}
      view={`${filterKeyOf(props)} ${search.sort ?? ''}`}
      label={title}
      rows={list.rows}
      rowKey={props.rowKey}
      rowName={props.rowName}
      columns={props.columns}
      chosen={chosen.length > 0 ? chosen : undefined}
      sort={search.sort}
      onSort={(sort) => onSearch({ ...search, sort })}
      onOpen={props.onOpen}
      tree={props.tree}
      selection={props.selection}
      onSelectionChange={props.onSelectionChange}
      hasMore={list.hasMore}
      onEndReached={list.loadMore}
      total={list.count?.exact === true ? list.count.value : undefined}
      loading={list.loading}
      error={list.error}
      onRetry={list.retry}
      density={props.density}
      empty={
        activeFilters(filters, search).length > 0 ? (
          filtered
        ) : seesAll ? (
          empty
        ) : (
          <Unseen {...props} />
        )
      }
    />
  );
}
