import { useMemo } from 'react';
import { DataGrid } from '../../../parts/grid/DataGrid.tsx';
import type { GridColumn, GridTree } from '../../../parts/grid/types.ts';
import { Empty } from '../../../parts/Empty.tsx';
import { StatusBadge } from '../../../parts/StatusBadge.tsx';
import { UsageBar } from '../Usage.tsx';
import { countOf, networkOf } from './networks.ts';
import type { SpaceRow } from './spaceRows.ts';
import type { useSpaceTree } from './useSpaceTree.ts';
import classes from './Space.module.css';

type Props = {
  tree: ReturnType<typeof useSpaceTree>;
  chosen: string | undefined;
  onChoose: (cidr: string) => void;
};

type Column = GridColumn<SpaceRow>;

const cidrOf = (row: SpaceRow): string =>
  row.kind === 'prefix' ? row.prefix.cidr : row.kind === 'free' ? row.cidr : '';

function networkColumn(chosen: string | undefined): Column {
  return {
    id: 'network',
    header: 'Network',
    width: 160,
    grow: 2,
    cell: (row) =>
      row.kind === 'more' ? (
        <span className={classes.more}>Show more</span>
      ) : (
        <span
          className={classes.network}
          data-free={row.kind === 'free' || undefined}
          aria-current={cidrOf(row) === chosen || undefined}
        >
          {cidrOf(row)}
        </span>
      ),
    text: cidrOf,
  };
}

function StatusCell({ row }: { row: SpaceRow }) {
  if (row.kind === 'more') return null;
  if (row.kind === 'free') return <span className={classes.muted}>Free</span>;
  const { status } = row.prefix;
  if (status === null) return <span className={classes.muted}>Not readable for you</span>;
  return <StatusBadge status={status} plain />;
}

const STATUS: Column = {
  id: 'status',
  header: 'Status',
  width: 100,
  grow: 0,
  cell: (row) => <StatusCell row={row} />,
  text: (row) =>
    row.kind === 'free' ? 'free' : row.kind === 'prefix' ? (row.prefix.status ?? '') : '',
};

function UsedCell({ row }: { row: SpaceRow }) {
  if (row.kind === 'prefix') return row.prefix.usage && <UsageBar usage={row.prefix.usage} />;
  const block = networkOf(cidrOf(row));
  return row.kind === 'free' && block ? (
    <span className={classes.muted}>{countOf(block)}</span>
  ) : null;
}

const USED: Column = {
  id: 'used',
  header: 'Used',
  width: 130,
  hideBelow: 360,
  cell: (row) => <UsedCell row={row} />,
  text: (row) => (row.kind === 'prefix' && row.prefix.usage ? `${row.prefix.usage.percent} %` : ''),
};

/** The prefixes of an address space below each other, and the free networks between them. */
export function SpaceTree({ tree: space, chosen, onChoose }: Props) {
  const columns = useMemo(() => [networkColumn(chosen), STATUS, USED], [chosen]);
  const tree: GridTree<SpaceRow> = {
    childrenOf: (row) => (row.kind === 'prefix' ? row.children : undefined),
    hasChildren: (row) =>
      row.kind === 'prefix' && row.prefix.id !== null && (row.prefix.usage?.children ?? 0) > 0,
    expanded: space.opened,
    onExpandedChange: space.open,
  };
  const open = (row: SpaceRow) => {
    if (row.kind === 'more') space.more(row);
    else onChoose(cidrOf(row));
  };
  return (
    <DataGrid
      main
      label="Address space"
      rows={space.rows}
      rowKey={({ key }) => key}
      columns={columns}
      tree={tree}
      onOpen={open}
      shownRow={(row) => chosen !== undefined && cidrOf(row) === chosen}
      hasMore={space.hasMore}
      onEndReached={space.loadMore}
      loading={space.isLoading}
      error={space.error}
      onRetry={space.retry}
      empty={
        <Empty
          kind="nothing"
          title="No prefixes here yet"
          detail="Prefixes that are in no other are shown here. Those in prefixes that you may not read are in the list."
        />
      }
    />
  );
}
