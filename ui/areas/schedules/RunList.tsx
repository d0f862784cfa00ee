import { useMemo } from 'react';
import { answer, api, type Schemas } from '../../app/api.ts';
import { Actor } from '../../parts/Actor.tsx';
import { Duration } from '../../parts/Duration.tsx';
import { Empty } from '../../parts/Empty.tsx';
import type { GridColumn } from '../../parts/grid/types.ts';
import { ListSection } from '../../parts/list/ListSection.tsx';
import { toQuery, withoutAppearance, type ListSearch } from '../../parts/list/search.ts';
import { useList } from '../../parts/list/useList.ts';
import type { Names } from '../../parts/names.ts';
import { PageLink } from '../../parts/PageLink.tsx';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Time } from '../../parts/Time.tsx';
import { RUN_FILTERS, type RunsQuery } from './scheduleFilters.ts';
import { scheduleKey } from './scheduleQueries.ts';
import { kindText, reasonText, runStatus } from './scheduleText.ts';
import classes from './Schedules.module.css';

type Run = Schemas['ScheduleRun'];

type Props = {
  scheduleId: string;
  search: ListSearch;
  onSearch: (search: ListSearch) => void;
};

const runColumns = (names: Names): GridColumn<Run>[] => [
  {
    id: 'dueAt',
    header: 'Time',
    width: 116,
    grow: 0,
    cell: ({ dueAt }) => <Time value={dueAt} />,
    text: ({ dueAt }) => dueAt,
  },
  {
    id: 'outcome',
    header: 'Outcome',
    width: 120,
    grow: 0,
    cell: (run) => <StatusBadge status={runStatus(run)} />,
    text: runStatus,
  },
  {
    id: 'job',
    header: 'Job',
    width: 120,
    grow: 2,
    cell: ({ job, reason, jobErrorCode }) =>
      job === null ? (
        reasonText(reason)
      ) : (
        <span className={classes.inline}>
          {job.purged ? <span>{job.id} (purged)</span> : <RecordLink id={job.id} />}
          {jobErrorCode !== null && <code>{jobErrorCode}</code>}
        </span>
      ),
    text: ({ jobId, reason }) => jobId ?? reason ?? '',
  },
  {
    id: 'duration',
    header: 'Duration',
    width: 88,
    grow: 0,
    align: 'end',
    hideBelow: 520,
    cell: ({ startedAt, finishedAt }) => <Duration from={startedAt} to={finishedAt} />,
  },
  {
    id: 'kind',
    header: 'Kind',
    width: 130,
    grow: 0,
    hideBelow: 640,
    cell: ({ kind, caughtUp }) => (caughtUp ? `${kindText(kind)}, late` : kindText(kind)),
    text: ({ kind }) => kind,
  },
  {
    id: 'actor',
    header: 'Who',
    width: 110,
    hideBelow: 760,
    cell: ({ actorId }) => <Actor id={actorId} names={names} />,
    text: ({ actorId }) => actorId,
  },
];

const keyOf = ({ id }: Run): string => id;

/** The runs that the address asks for, and their number by outcome. */
function useRuns(scheduleId: string, search: ListSearch) {
  return useList<Run>({
    queryKey: [...scheduleKey(scheduleId), 'runs', withoutAppearance(search)],
    read: (part, signal, now) => {
      const query = {
        ...toQuery<RunsQuery>(RUN_FILTERS, search, now, part),
        scheduleId: [scheduleId],
        include: 'labels,people',
      };
      return answer(api.GET('/api/schedules/logs', { params: { query }, signal }));
    },
  });
}

/** The runs of a schedule: scheduled ones, triggers and backfills. */
export function RunList({ scheduleId, search, onSearch }: Props) {
  const list = useRuns(scheduleId, search);
  const columns = useMemo(() => runColumns(list.names), [list.names]);
  return (
    <ListSection
      title="Runs"
      noun={['run', 'runs']}
      actions={
        <PageLink to="/jobs" search={{ scheduleId }} className={classes.jobs}>
          Jobs of the schedule
        </PageLink>
      }
      list={list}
      filters={RUN_FILTERS}
      search={search}
      onSearch={onSearch}
      columns={columns}
      rowKey={keyOf}
      empty={
        <Empty
          kind="nothing"
          title="No runs yet"
          detail="Each occurrence, trigger and backfilled occurrence is listed here."
        />
      }
    />
  );
}
