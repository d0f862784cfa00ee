import { useQuery } from '@tanstack/react-query';
import { useLiveRefresh } from '../../app/live.ts';
import { joinValues } from '../../parts/list/search.ts';
import { PageLink } from '../../parts/PageLink.tsx';
import { usePermissions } from '../../parts/permissions.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Time } from '../../parts/Time.tsx';
import type { Schemas } from '../../app/api.ts';
import { BACKUP_TYPES, schedulesQuery } from './backupQueries.ts';
import classes from './Backups.module.css';

const ALL = { jobType: joinValues(BACKUP_TYPES) };

/** The schedules that make and test backups, and when they run next. Their pages do the rest. */
export function BackupSchedules() {
  const { canAnywhere } = usePermissions();
  const isAllowed = canAnywhere('schedule:read');
  const { data, error, refetch } = useQuery({ ...schedulesQuery, enabled: isAllowed });
  useLiveRefresh(['schedule.*'], schedulesQuery.queryKey);
  if (!isAllowed) return null;
  if (error && !data) return <ProblemNote problem={error} retry={() => void refetch()} />;
  if (!data) return null;
  const mayCreate = canAnywhere('schedule:write') && canAnywhere('backup:write');
  return (
    <section className={classes.schedules} aria-label="Schedules of backups">
      <span className={classes.muted}>
        {data.items.length === 0 ? 'No schedule makes or tests backups.' : 'Schedules'}
      </span>
      {data.items.map((schedule) => (
        <ScheduleItem key={schedule.id} schedule={schedule} />
      ))}
      <span className={classes.links}>
        {data.items.length > 0 && (
          <PageLink className={classes.link} to="/schedules" search={ALL}>
            All of them
          </PageLink>
        )}
        {mayCreate && (
          <PageLink
            className={classes.link}
            to="/schedules/new"
            search={{ jobType: BACKUP_TYPES[0] }}
          >
            New schedule
          </PageLink>
        )}
        {mayCreate && (
          <PageLink
            className={classes.link}
            to="/schedules/new"
            search={{ jobType: BACKUP_TYPES[1] }}
          >
            New schedule of test restores
          </PageLink>
        )}
      </span>
    </section>
  );
}

function ScheduleItem({ schedule }: { schedule: Schemas['ScheduleSummary'] }) {
  const { id, name, state, nextRuns, lastRun } = schedule;
  const next = nextRuns.find(({ at }) => at !== null)?.at;
  const hasFailed = lastRun?.outcome === 'failed' || lastRun?.jobStatus === 'failed';
  return (
    <span className={classes.schedule}>
      <RecordLink id={id} label={name} />
      {state !== 'active' && <StatusBadge status={state} plain />}
      {state === 'active' && next != null && <Time value={next} format="relative" />}
      {hasFailed && <StatusBadge status="failed" label="last run failed" plain />}
    </span>
  );
}
