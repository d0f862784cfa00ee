import { useEffect, useMemo } from 'react';
import { DataGrid } from '../../../parts/grid/DataGrid.tsx';
import type { GridColumn, GridTree } from '../../../parts/grid/types.ts';
import { Empty } from '../../../parts/Empty.tsx';
import { StatusBadge } from '../../../parts/StatusBadge.tsx';
import { usageText } from '../amounts.ts';
import { UsageBar } from '../Usage.tsx';
import { countOf, networkOf } from './networks.ts';
import { PrintedTree } from './PrintedTree.tsx';
import { freeText } from './spaceRows.ts';
import type { Row, useSpaceTree } from './useSpaceTree.ts';
import classes from './Space.module.css';

type Props = {
  tree: ReturnType<typeof useSpaceTree>;
  chosen: string | undefined;
  onChoose: (cidr: string) => void;
};

type Column = GridColumn<Row>;

const cidrOf = (row: Row): string =>
  row.kind === 'prefix' ? row.prefix.cidr : row.kind === 'free' ? row.cidr : '';

type MoreProps = { row: Extract<Row, { kind: 'more' }>; onMore: Props['tree']['more'] };

/** Represents rows that are not read. Those that follow are asked for as soon as it is drawn. */
function More({ row, onMore }: MoreProps) {
  const { key, isNext, text } = row;
  useEffect(() => {
    if (isNext) onMore(row);
    // The row is another one with another key.
    // oxlint-disable-next-line react/exhaustive-deps
  }, [key, isNext, onMore]);
  return <span className={isNext ? classes.muted : classes.more}>{text}</span>;
}

function networkColumn(chosen: string | undefined, onMore: MoreProps['onMore']): Column {
  return {
    id: 'network',
    header: 'Network',
    width: 160,
    grow: 2,
    cell: (row) =>
      row.kind === 'more' ? (
        <More row={row} onMore={onMore} />
      ) : row.kind === 'note' ? (
        <span className={classes.muted}>{row.text}</span>
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

function StatusCell({ row }: { row: Row }) {
  if (row.kind === 'more' || row.kind === 'note') return null;
  if (row.kind === 'free') return <span className={classes.muted}>{freeText(row)}</span>;
  const { status } = row.prefix;
  if (status === null) return <span className={classes.muted}>You may not read it</span>;
  return <StatusBadge status={status} plain />;
}

const STATUS: Column = {
  id: 'status',
  header: 'Status',
  width: 100,
  grow: 0,
  cell: (row) => <StatusCell row={row} />,
  text: (row) =>
    row.kind === 'free'
      ? freeText(row).toLowerCase()
      : row.kind === 'prefix'
        ? (row.prefix.status ?? '')
        : '',
};

function UsedCell({ row }: { row: Row }) {
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
  text: (row) => (row.kind === 'prefix' && row.prefix.usage ? usageText(row.prefix.usage) : ''),
};

const keyOf = ({ key }: Row): string => key;

/** The prefixes of an address space below each other, and the free networks between them. */
export function SpaceTree({ tree: space, chosen, onChoose }: Props) {
  const { more } = space;
  const columns = useMemo(() => [networkColumn(chosen, more), STATUS, USED], [chosen, more]);
  const tree: GridTree<Row> = {
    childrenOf: (row) => (row.kind === 'prefix' ? row.children : undefined),
    hasChildren: (row) =>
      row.kind === 'prefix' && row.prefix.id !== null && (row.prefix.usage?.children ?? 0) > 0,
    expanded: space.opened,
    onExpandedChange: space.open,
  };
  const open = (row: Row) => {
    if (row.kind === 'more') more(row);
    else if (row.kind !== 'note') onChoose(cidrOf(row));
  };
  return (
    <>
      <PrintedTree rows={space.rows} shape={{ ...tree, rowKey: keyOf }} />
      <DataGrid
        main
        label="Address space"
        rows={space.rows}
        rowKey={keyOf}
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
    </>
  );
}
