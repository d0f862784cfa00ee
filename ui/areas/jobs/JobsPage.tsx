import { getRouteApi } from '@tanstack/react-router';
import { Button } from '@mantine/core';
import { useCallback, useMemo } from 'react';
import { answer, api } from '../../app/api.ts';
import { useLiveRefresh } from '../../app/live.ts';
import { useSession } from '../../app/session/useSession.ts';
import { useShortcuts } from '../../app/shortcuts.ts';
import { Empty } from '../../parts/Empty.tsx';
import { Icon } from '../../parts/icons.tsx';
import { ListPage } from '../../parts/list/ListPage.tsx';
import {
  toQuery,
  withoutAppearance,
  type Filter,
  type ListSearch,
} from '../../parts/list/search.ts';
import { useList } from '../../parts/list/useList.ts';
import { usePermissions } from '../../parts/permissions.tsx';
import { jobColumns } from './jobColumns.tsx';
import { JOB_FILTERS, type JobsQuery } from './jobFilters.ts';
import type { JobSummary } from './jobQueries.ts';
import { PageLink } from '../../parts/PageLink.tsx';

const route = getRouteApi('/frame/jobs');

const JOB_EVENTS = ['job.*'] as const;

const keyOf = ({ id }: JobSummary): string => id;

/** Jobs by filters. Jobs of the system are shown only if one asks for them. */
export function JobsPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const list = useList<JobSummary>({
    queryKey: ['jobs', 'list', withoutAppearance(search)],
    read: (part, signal, now) => {
      const query = {
        ...toQuery<JobsQuery>(JOB_FILTERS, search, now, part),
        include: 'labels,people',
      };
      return answer(api.GET('/api/jobs', { params: { query }, signal }));
    },
  });
  useLiveRefresh(JOB_EVENTS, ['jobs', 'list']);
  useShortcuts(
    useSession().canAnywhere('job:write')
      ? [{ keys: 'c', label: 'New job', run: () => void navigate({ to: '/jobs/new' }) }]
      : [],
  );
  const columns = useMemo(() => jobColumns(list.names), [list.names]);
  const filters = useShownFilters(search);
  const open = useCallback(
    ({ id }: JobSummary) => void navigate({ to: '/jobs/$jobId', params: { jobId: id } }),
    [navigate],
  );
  const change = (next: ListSearch) => void navigate({ search: next, replace: true });
  return (
    <ListPage
      title="Jobs"
      noun={['job', 'jobs']}
      permission="job:read"
      actions={<NewJobButton />}
      list={list}
      filters={filters}
      search={search}
      onSearch={change}
      columns={columns}
      rowKey={keyOf}
      onOpen={open}
      empty={
        <Empty
          kind="nothing"
          title="No jobs yet"
          detail="A job is one piece of background work. People, schedules and approval requests create jobs."
          action={<NewJobButton />}
        />
      }
    />
  );
}

/** Filters that would only repeat what is known are left out, unless the address has them. */
function useShownFilters(search: ListSearch): readonly Filter[] {
  const { tenants } = useSession();
  const isOneTenant = tenants !== undefined && tenants.length < 2;
  return JOB_FILTERS.filter(
    ({ id }) =>
      search[id] !== undefined || !(id === 'retryOf' || (id === 'tenantId' && isOneTenant)),
  );
}

/** Opens the form for a job; hidden from those who may create none. */
function NewJobButton() {
  const { canAnywhere } = usePermissions();
  if (!canAnywhere('job:write')) return null;
  return (
    <Button
      renderRoot={(props) => <PageLink {...props} to="/jobs/new" />}
      leftSection={<Icon name="plus" size={14} />}
    >
      New job
    </Button>
  );
}
