import { getRouteApi } from '@tanstack/react-router';
import { useCallback, useMemo } from 'react';
import { useLiveState } from '../../app/live.ts';
import { useShortcuts } from '../../app/shortcuts.ts';
import { Empty } from '../../parts/Empty.tsx';
import { ListPage } from '../../parts/list/ListPage.tsx';
import type { ListSearch } from '../../parts/list/search.ts';
import viewClasses from '../../parts/list/Views.module.css';
import { PageLink } from '../../parts/PageLink.tsx';
import { ReasonButton } from '../../parts/PermissionButton.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { eventColumns } from './eventColumns.tsx';
import { EVENT_FILTERS } from './eventFilters.ts';
import type { EventItem } from './eventQueries.ts';
import { newText } from './eventText.ts';
import { useTail } from './useTail.ts';
import classes from './Events.module.css';

const route = getRouteApi('/frame/events');

const keyOf = ({ id }: EventItem): string => id;

/** The log of events, as it is published. */
export function EventsPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const tail = useTail(search);
  const { list } = tail;
  const columns = useMemo(() => eventColumns(list.names), [list.names]);
  useShortcuts([
    tail.isPaused
      ? { keys: 'p', label: 'Resume', run: tail.resume }
      : { keys: 'p', label: 'Pause', run: tail.pause },
  ]);
  const open = useCallback(
    ({ id }: EventItem) => void navigate({ to: '/events/$eventId', params: { eventId: id } }),
    [navigate],
  );
  return (
    <ListPage
      title="Events"
      noun={['event', 'events']}
      permission="event:read"
      views={
        <nav className={viewClasses.views} aria-label="Events and their types">
          <PageLink to="/events" className={viewClasses.view} current>
            Tail
          </PageLink>
          <PageLink to="/event-types" className={viewClasses.view}>
            Event types
          </PageLink>
        </nav>
      }
      actions={<TailActions tail={tail} />}
      list={list}
      filters={EVENT_FILTERS}
      search={search}
      onSearch={(next: ListSearch) => void navigate({ search: next, replace: true })}
      columns={columns}
      rowKey={keyOf}
      onOpen={open}
      empty={
        <Empty kind="nothing" title="No events yet" detail="Events appear here as they happen." />
      }
    />
  );
}

/** Whether the tail moves, and what has come while it does not. */
function TailActions({ tail }: { tail: ReturnType<typeof useTail> }) {
  const { isPaused, fresh, pause, resume } = tail;
  const state = useLiveState();
  return (
    <div className={classes.tail}>
      <span role="status" className={classes.tail}>
        {isPaused ? (
          <StatusBadge status="paused" plain />
        ) : state === 'live' ? (
          <StatusBadge status="connected" label="Live" plain />
        ) : (
          <StatusBadge status="pending" label="Connecting" plain />
        )}
        {isPaused && fresh && fresh.value > 0 && (
          <button type="button" className={classes.fresh} onClick={resume}>
            {newText(fresh)} · show
          </button>
        )}
      </span>
      <ReasonButton
        variant="default"
        icon={isPaused ? 'play' : 'pause'}
        onClick={isPaused ? resume : pause}
      >
        {isPaused ? 'Resume' : 'Pause'}
      </ReasonButton>
    </div>
  );
}
