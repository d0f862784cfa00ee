import { Button } from '@mantine/core';
import { getRouteApi } from '@tanstack/react-router';
import { useCallback, useMemo } from 'react';
import { answer, api } from '../../app/api.ts';
import { useLiveRefresh } from '../../app/live.ts';
import { useSession } from '../../app/session/useSession.ts';
import { useShortcuts } from '../../app/shortcuts.ts';
import { Empty } from '../../parts/Empty.tsx';
import { Icon } from '../../parts/icons.tsx';
import { ListPage } from '../../parts/list/ListPage.tsx';
import { toQuery, withoutAppearance, type ListSearch } from '../../parts/list/search.ts';
import { useList } from '../../parts/list/useList.ts';
import { usePermissions } from '../../parts/permissions.tsx';
import { scheduleColumns } from './scheduleColumns.tsx';
import { SCHEDULE_FILTERS, type SchedulesQuery } from './scheduleFilters.ts';
import type { ScheduleSummary } from './scheduleQueries.ts';
import { PageLink } from '../../parts/PageLink.tsx';

const route = getRouteApi('/frame/schedules');

const keyOf = ({ id }: ScheduleSummary): string => id;

/** Schedules by filters: when they run next, and how their last run ended. */
export function SchedulesPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const list = useList<ScheduleSummary>({
    queryKey: ['schedules', 'list', withoutAppearance(search)],
    read: (part, signal, now) => {
      const query = {
        ...toQuery<SchedulesQuery>(SCHEDULE_FILTERS, search, now, part),
        include: 'labels,people',
      };
      return answer(api.GET('/api/schedules', { params: { query }, signal }));
    },
  });
  useLiveRefresh(['schedule.*'], ['schedules', 'list']);
  useShortcuts(
    useSession().canAnywhere('schedule:write')
      ? [{ keys: 'c', label: 'New schedule', run: () => void navigate({ to: '/schedules/new' }) }]
      : [],
  );
  const columns = useMemo(() => scheduleColumns(list.names), [list.names]);
  const open = useCallback(
    ({ id }: ScheduleSummary) =>
      void navigate({ to: '/schedules/$scheduleId', params: { scheduleId: id } }),
    [navigate],
  );
  return (
    <ListPage
      title="Schedules"
      noun={['schedule', 'schedules']}
      permission="schedule:read"
      actions={<NewScheduleButton />}
      list={list}
      filters={SCHEDULE_FILTERS}
      search={search}
      onSearch={(next: ListSearch) => void navigate({ search: next, replace: true })}
      columns={columns}
      rowKey={keyOf}
      onOpen={open}
      empty={
        <Empty
          kind="nothing"
          title="No schedules yet"
          detail="A schedule creates a job at each time of a cron expression, with the permissions of its owner."
          action={<NewScheduleButton />}
        />
      }
    />
  );
}

/** Opens the form for a schedule; hidden from those who may create none. */
function NewScheduleButton() {
  const { canAnywhere } = usePermissions();
  if (!canAnywhere('schedule:write')) return null;
  return (
    <Button
      renderRoot={(props) => <PageLink {...props} to="/schedules/new" />}
      leftSection={<Icon name="plus" size={14} />}
    >
      New schedule
    </Button>
  );
}
