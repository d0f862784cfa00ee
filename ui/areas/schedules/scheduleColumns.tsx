import { Actor } from '../../parts/Actor.tsx';
import type { GridColumn } from '../../parts/grid/types.ts';
import { tenantColumn } from '../../parts/list/tenantColumn.tsx';
import { personName, type Names } from '../../parts/names.ts';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Time } from '../../parts/Time.tsx';
import type { ScheduleSummary } from './scheduleQueries.ts';
import { runStatus } from './scheduleText.ts';
import classes from './Schedules.module.css';

const nextOf = ({ nextRuns, state }: ScheduleSummary): string | null =>
  state === 'active' ? (nextRuns.find(({ at }) => at !== null)?.at ?? null) : null;

function LastRun({ lastRun }: ScheduleSummary) {
  if (lastRun === null) return <span className={classes.muted}>None yet</span>;
  return (
    <span className={classes.inline}>
      <StatusBadge status={runStatus(lastRun)} plain />
      <Time value={lastRun.dueAt} format="relative" />
    </span>
  );
}

/** When and what it runs. */
const WHAT_COLUMNS: GridColumn<ScheduleSummary>[] = [
  {
    id: 'expression',
    header: 'Expression',
    width: 140,
    hideBelow: 800,
    cell: ({ cronExpression }) => <code>{cronExpression}</code>,
    text: ({ cronExpression }) => cronExpression,
  },
  {
    id: 'timezone',
    header: 'Time zone',
    width: 130,
    hideBelow: 960,
    cell: ({ timezone }) => timezone,
    text: ({ timezone }) => timezone,
  },
  {
    id: 'jobType',
    header: 'Job type',
    width: 130,
    hideBelow: 700,
    cell: ({ jobType }) => jobType,
    text: ({ jobType }) => jobType,
  },
];

const OPTIONAL: GridColumn<ScheduleSummary>[] = [
  {
    id: 'overlapPolicy',
    header: 'Overlaps',
    width: 110,
    isOptional: true,
    cell: ({ overlapPolicy }) => overlapPolicy,
    text: ({ overlapPolicy }) => overlapPolicy,
  },
  {
    id: 'updatedAt',
    header: 'Changed',
    width: 116,
    isOptional: true,
    sort: { asc: 'updatedAt', desc: '-updatedAt' },
    cell: ({ updatedAt }) => <Time value={updatedAt} />,
    text: ({ updatedAt }) => updatedAt,
  },
  {
    id: 'createdAt',
    header: 'Created',
    width: 116,
    isOptional: true,
    sort: { asc: 'createdAt', desc: '-createdAt' },
    cell: ({ createdAt }) => <Time value={createdAt} />,
    text: ({ createdAt }) => createdAt,
  },
  {
    id: 'id',
    header: 'Id',
    width: 250,
    isOptional: true,
    cell: ({ id }) => <code>{id}</code>,
    text: ({ id }) => id,
  },
];

/** The columns of lists of schedules. */
export const scheduleColumns = (names: Names): GridColumn<ScheduleSummary>[] => [
  {
    id: 'state',
    header: 'State',
    width: 96,
    grow: 0,
    cell: ({ state }) => <StatusBadge status={state} />,
    text: ({ state }) => state,
  },
  {
    id: 'name',
    header: 'Name',
    width: 150,
    grow: 2,
    sort: { asc: 'name', desc: '-name' },
    cell: ({ id, name }) => <RecordLink id={id} label={name} />,
    text: ({ name }) => name,
  },
  {
    id: 'next',
    header: 'Next run',
    width: 104,
    grow: 0,
    hideBelow: 420,
    cell: (schedule) => <Time value={nextOf(schedule)} format="relative" />,
    text: (schedule) => nextOf(schedule) ?? '',
  },
  {
    id: 'last',
    header: 'Last run',
    width: 190,
    grow: 0,
    hideBelow: 620,
    cell: LastRun,
    text: ({ lastRun }) => (lastRun ? `${runStatus(lastRun)} ${lastRun.dueAt}` : ''),
  },
  ...WHAT_COLUMNS,
  {
    id: 'owner',
    header: 'Owner',
    width: 120,
    hideBelow: 1_080,
    cell: ({ owner }) => <Actor id={owner} names={names} />,
    text: ({ owner }) => personName(names, owner),
  },
  tenantColumn(names, { isOptional: true }),
  ...OPTIONAL,
];
