import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useMemo } from 'react';
import { useLiveRefresh } from '../../app/live.ts';
import { usePendingApprovals } from '../../app/shell/usePendingApprovals.ts';
import { useSession } from '../../app/session/useSession.ts';
import { Empty } from '../../parts/Empty.tsx';
import { formatCount } from '../../parts/format.ts';
import { ListPage } from '../../parts/list/ListPage.tsx';
import { withoutAppearance, type ListSearch } from '../../parts/list/search.ts';
import { useList } from '../../parts/list/useList.ts';
import { columnsOf } from './columns.tsx';
import { filtersOf, readRequests, viewIn, VIEWS, type View } from './list.ts';
import type { ApprovalSummary } from '../../parts/approvals/requestQuery.ts';
import viewClasses from '../../parts/list/Views.module.css';
import classes from './ApprovalsPage.module.css';
import { PageLink } from '../../parts/PageLink.tsx';

const route = getRouteApi('/frame/approvals');

const EMPTY: Readonly<Record<View, { title: string; detail: string }>> = {
  decide: {
    title: 'Nothing waits for your decision',
    detail: 'Requests that are assigned to you, or to a role that you hold, appear here.',
  },
  mine: {
    title: 'You have not asked for anything yet',
    detail: 'If another person should check a change, ask for approval instead of making it.',
  },
  all: {
    title: 'There are no approval requests that you may see',
    detail: 'You see requests that you made, may decide on, or may read with workflow:read.',
  },
};

const LABELS: Readonly<Record<View, string>> = { decide: 'To decide', mine: 'Mine', all: 'All' };

/** Which requests are listed. The filters stay, without a status: it has no meaning in each of them. */
function Views({ view, search }: { view: View; search: ListSearch }) {
  const waiting = usePendingApprovals();
  return (
    <nav className={viewClasses.views} aria-label="Which requests">
      {VIEWS.map((each) => (
        <PageLink
          key={each}
          to="/approvals"
          search={{ ...search, view: each, status: undefined }}
          className={viewClasses.view}
          current={each === view}
        >
          {LABELS[each]}
          {each === 'decide' && waiting > 0 && (
            <span className={classes.count}>{formatCount(waiting)}</span>
          )}
        </PageLink>
      ))}
    </nav>
  );
}

/** The requests to decide have no filter by status: all are pending. */
const PARAMETERS = ['status', 'view'] as const;

/** The list of approval requests. */
export function ApprovalsPage() {
  const search: ListSearch = route.useSearch();
  const navigate = useNavigate();
  const { canAnywhere } = useSession();
  const known = viewIn(search);
  const view = known ?? (canAnywhere('workflow:approve') ? 'decide' : 'mine');
  const onSearch = (next: ListSearch) =>
    void navigate({ to: '/approvals', search: next, replace: true });
  const list = useList<ApprovalSummary>({
    queryKey: ['approvals', 'list', view, withoutAppearance(search)],
    read: (part, signal, now) => readRequests(view, search, part, signal, now),
  });
  useLiveRefresh(['workflow.*'], ['approvals']);
  const { names } = list;
  const columns = useMemo(() => columnsOf(names), [names]);
  return (
    <ListPage
      title="Approvals"
      noun={['request', 'requests']}
      list={list}
      columns={columns}
      rowKey={({ id }) => id}
      rowName={({ title }) => title}
      onOpen={({ id }) => void navigate({ to: '/approvals/$id', params: { id } })}
      filters={filtersOf(view)}
      search={search}
      onSearch={onSearch}
      views={<Views view={view} search={search} />}
      parameters={known ? PARAMETERS : PARAMETERS.slice(0, 1)}
      empty={<Empty kind={view === 'all' ? 'hidden' : 'nothing'} {...EMPTY[view]} />}
    />
  );
}
