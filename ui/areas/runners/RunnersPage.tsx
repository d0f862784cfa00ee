import { Button } from '@mantine/core';
import { getRouteApi } from '@tanstack/react-router';
import { PageLink } from '../../parts/PageLink.tsx';
import { useCallback, useState } from 'react';
import { useLiveRefresh } from '../../app/live.ts';
import { useSession } from '../../app/session/useSession.ts';
import { useShortcuts } from '../../app/shortcuts.ts';
import { usePolling } from '../../app/usePolling.ts';
import { Empty } from '../../parts/Empty.tsx';
import type { GridTree } from '../../parts/grid/types.ts';
import { Icon } from '../../parts/icons.tsx';
import { ListPage } from '../../parts/list/ListPage.tsx';
import type { ListSearch } from '../../parts/list/search.ts';
import { useList } from '../../parts/list/useList.ts';
import { usePermissions } from '../../parts/permissions.tsx';
import { listedPools, POOL_FILTERS } from './poolList.ts';
import { poolPath } from './poolText.ts';
import { POOL_COLUMNS, type PoolRow } from './runnerColumns.tsx';
import { MAX_RUNNERS, readPools, readRunners, RUNNERS_MS } from './runnerQueries.ts';
import classes from './Runners.module.css';

const route = getRouteApi('/frame/runners');

const LIST = ['runners', 'list'];

const keyOf = (row: PoolRow): string => (row.kind === 'pool' ? row.pool.name : row.runner.id);

/** The pools that the filters leave, each with its runners. */
async function readRows(search: ListSearch, signal: AbortSignal): Promise<PoolRow[]> {
  const [pools, runners] = await Promise.all([readPools(signal), readRunners(signal)]);
  return listedPools(pools, search).map((pool) => ({
    kind: 'pool',
    pool,
    isCut: runners.length >= MAX_RUNNERS,
    runners: runners
      .filter((runner) => runner.pool === pool.name)
      .sort((one, other) => Number(other.alive) - Number(one.alive))
      .map((runner) => ({ kind: 'runner', runner })),
  }));
}

/** Runners below their pools. All are open but those that were closed. */
function useTree(rows: readonly PoolRow[]): GridTree<PoolRow> {
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const names = rows.flatMap((row) => (row.kind === 'pool' ? [row.pool.name] : []));
  return {
    childrenOf: (row) => (row.kind === 'pool' ? row.runners : []),
    hasChildren: (row) => row.kind === 'pool' && row.runners.length > 0,
    expanded: new Set(names.filter((name) => !closed.has(name))),
    onExpandedChange: (expanded) => setClosed(new Set(names.filter((name) => !expanded.has(name)))),
  };
}

/** All pools with their runners: who works, how much, and where jobs wait. */
export function RunnersPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const { columns, density, ...wanted } = search;
  const list = useList<PoolRow>({
    queryKey: [...LIST, wanted],
    read: async (_part, signal) => {
      const items = await readRows(search, signal);
      return { items, nextCursor: null, count: { value: items.length, exact: true } };
    },
  });
  useLiveRefresh(['pool.*', 'job-type.*'], LIST);
  usePolling(LIST, RUNNERS_MS);
  useShortcuts(
    useSession().canAnywhere('jobtype:write')
      ? [{ keys: 'c', label: 'New pool', run: () => void navigate({ to: '/runners/new' }) }]
      : [],
  );
  const open = useCallback(
    (row: PoolRow) =>
      void navigate({
        to: (row.kind === 'pool' ? poolPath(row.pool.name) : `/runners/${row.runner.id}`) as '/',
      }),
    [navigate],
  );
  const rows = list.rows ?? [];
  const tree = useTree(rows);
  const isCut = rows.some((row) => row.kind === 'pool' && row.isCut);
  return (
    <ListPage
      title="Runners"
      noun={['pool', 'pools']}
      actions={<NewPoolButton />}
      list={list}
      filters={POOL_FILTERS}
      search={search}
      onSearch={(next: ListSearch) => void navigate({ search: next, replace: true })}
      columns={POOL_COLUMNS}
      rowKey={keyOf}
      onOpen={open}
      tree={tree}
      empty={
        <Empty
          kind="nothing"
          title="No pools yet"
          detail="A pool is a name under which runners take jobs. Create one, then a token for its runners: the page of the pool has the command that starts one."
          action={<NewPoolButton />}
        />
      }
    >
      {isCut && (
        <p className={classes.muted}>
          {MAX_RUNNERS} runners are shown. The page of a pool has its own.
        </p>
      )}
    </ListPage>
  );
}

/** Opens the form for a pool; hidden from those who may create none. */
function NewPoolButton() {
  const { canAnywhere } = usePermissions();
  if (!canAnywhere('jobtype:write')) return null;
  return (
    <Button
      renderRoot={(props) => <PageLink {...props} to="/runners/new" />}
      leftSection={<Icon name="plus" size={14} />}
    >
      New pool
    </Button>
  );
}
