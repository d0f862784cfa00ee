import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState, type ReactNode } from 'react';
import { useLiveRefresh } from '../../app/live.ts';
import { useSession } from '../../app/session/useSession.ts';
import { useShortcuts } from '../../app/shortcuts.ts';
import { useTitle } from '../../app/useTitle.ts';
import { Json } from '../../parts/Json.tsx';
import { formatTimeRange, parseTimeRange, type ListSearch } from '../../parts/list/search.ts';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { Section } from '../../parts/Section.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Notices } from './Notices.tsx';
import { RunCalendar } from './RunCalendar.tsx';
import { RunList } from './RunList.tsx';
import { ScheduleActions } from './ScheduleActions.tsx';
import { ScheduleFacts } from './ScheduleFacts.tsx';
import { scheduleKey, scheduleQuery, type Schedule } from './scheduleQueries.ts';
import classes from './Schedules.module.css';
import { serverNow } from '../../parts/clock.ts';
import { Reading } from '../../parts/Reading.tsx';

const route = getRouteApi('/frame/schedules/$scheduleId');

const PARENT = { label: 'Schedules', to: '/schedules' };

/** What has created the job that an event is about. */
const sourceOf = ({ source }: Readonly<Record<string, unknown>>): unknown =>
  typeof source === 'object' && source !== null && 'id' in source ? source.id : undefined;

/** A schedule: when it runs next, how its runs ended, and what it runs. */
export function SchedulePage() {
  const { scheduleId } = route.useParams();
  const { data: schedule, error, refetch } = useQuery(scheduleQuery(scheduleId));
  useTitle(schedule && `Schedule ${schedule.name}`);
  // A run shows the status of its job.
  useLiveRefresh(['schedule.*', 'job.*'], scheduleKey(scheduleId), ({ subject, data }) =>
    [subject.id, data.scheduleId, sourceOf(data)].includes(scheduleId),
  );
  if (!schedule)
    return (
      <RecordPage parent={PARENT} title="Schedule" id={scheduleId}>
        {error ? (
          <ProblemNote problem={error} retry={() => void refetch()} />
        ) : (
          <Reading height={320} label="Loading the schedule" />
        )}
      </RecordPage>
    );
  return (
    <LoadedSchedule
      key={scheduleId}
      schedule={schedule}
      error={error}
      onRetry={() => void refetch()}
    />
  );
}

type LoadedProps = { schedule: Schedule; error: Error | null; onRetry: () => void };

function LoadedSchedule({ schedule, error, onRetry }: LoadedProps) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const [note, setNote] = useState<ReactNode>();
  const change = (next: ListSearch) => void navigate({ search: next, replace: true });
  const { can } = useSession();
  useShortcuts(
    can('schedule:write', { tenantId: schedule.tenantId })
      ? [
          {
            keys: 'e',
            label: 'Edit the schedule',
            run: () =>
              void navigate({
                to: '/schedules/$scheduleId/edit',
                params: { scheduleId: schedule.id },
              }),
          },
        ]
      : [],
  );
  const chosen = parseTimeRange(search.dueAt, new Date(serverNow()))?.from?.toISOString();
  return (
    <RecordPage
      parent={PARENT}
      id={schedule.id}
      title={schedule.name}
      badge={<StatusBadge status={schedule.state} />}
      note={schedule.description === '' ? undefined : schedule.description}
      actions={<ScheduleActions schedule={schedule} onNote={setNote} />}
      aside={<ScheduleFacts schedule={schedule} />}
    >
      {error && <ProblemNote problem={error} retry={onRetry} hasData />}
      {note !== undefined && (
        <div className={classes.notice} role="status">
          {note}
        </div>
      )}
      <Notices schedule={schedule} />
      <RunCalendar
        scheduleId={schedule.id}
        chosen={chosen}
        onChoose={(day) =>
          change({ ...search, dueAt: day === undefined ? undefined : formatTimeRange(day) })
        }
      />
      <RunList scheduleId={schedule.id} search={search} onSearch={change} />
      <Section title="Payload">
        <Json value={schedule.payload} label="Payload" />
      </Section>
    </RecordPage>
  );
}
