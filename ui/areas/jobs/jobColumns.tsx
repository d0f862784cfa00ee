import { Progress } from '@mantine/core';
import { Actor } from '../../parts/Actor.tsx';
import { Duration } from '../../parts/Duration.tsx';
import { Exact } from '../../parts/Exact.tsx';
import { formatDuration } from '../../parts/format.ts';
import type { GridColumn } from '../../parts/grid/types.ts';
import { tenantColumn } from '../../parts/list/tenantColumn.tsx';
import { labelOf, personName, type Names } from '../../parts/names.ts';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Time } from '../../parts/Time.tsx';
import { sourceLabel } from './jobFilters.ts';
import type { JobSummary } from './jobQueries.ts';
import { runTimeOf } from './jobText.ts';
import classes from './Jobs.module.css';

/** The latest about a job in a line: its error, or how far it is. */
function Latest({ error, status, progress, cancelRequestedAt }: JobSummary) {
  if (error)
    return (
      <span className={status === 'failed' ? classes.error : undefined}>
        <code>{error.code}</code> <Exact text={error.message} />
      </span>
    );
  if (status !== 'running') return null;
  return (
    <span className={classes.progress}>
      {progress && <Progress value={progress.percent} size="sm" w={72} aria-label="Progress" />}
      {cancelRequestedAt === null ? <Exact text={progress?.message ?? ''} /> : 'is being cancelled'}
    </span>
  );
}

const latestText = ({ error, progress }: JobSummary): string =>
  error ? `${error.code}: ${error.message}` : (progress?.message ?? '');

/** What has created a job: the schedule, request or webhook, or the person. */
function CreatedBy({ job: { source, createdBy }, names }: { job: JobSummary; names: Names }) {
  if (source.kind === 'api') return <Actor id={createdBy} names={names} />;
  return (
    <span>
      {sourceLabel(source.kind)}
      {source.id !== null && (
        <>
          {' '}
          <RecordLink id={source.id} names={names} />
        </>
      )}
    </span>
  );
}

/** How often, how long and when. */
const TIME_COLUMNS: GridColumn<JobSummary>[] = [
  {
    id: 'attempts',
    header: 'Attempts',
    width: 92,
    grow: 0,
    align: 'end',
    hideBelow: 1_000,
    cell: ({ attempts, retryPolicy }) =>
      attempts > 1 ? `${attempts} of ${retryPolicy.maxAttempts}` : attempts,
    text: ({ attempts }) => String(attempts),
  },
  {
    id: 'duration',
    header: 'Duration',
    width: 88,
    grow: 0,
    align: 'end',
    hideBelow: 620,
    cell: ({ startedAt, finishedAt }) => <Duration from={startedAt} to={finishedAt} />,
    text: (job) => formatDuration(runTimeOf(job) ?? Number.NaN),
  },
  {
    id: 'createdAt',
    header: 'Created',
    width: 116,
    grow: 0,
    sort: { asc: 'createdAt', desc: '-createdAt' },
    cell: ({ createdAt }) => <Time value={createdAt} />,
    text: ({ createdAt }) => createdAt,
  },
];

/** Columns that are shown only if they are chosen. */
const optionalColumns = (names: Names): GridColumn<JobSummary>[] => [
  tenantColumn(names, { isOptional: true }),
  {
    id: 'id',
    header: 'Id',
    width: 250,
    isOptional: true,
    cell: ({ id }) => <code>{id}</code>,
    text: ({ id }) => id,
  },
  {
    id: 'createdBy',
    header: 'Created by',
    width: 130,
    isOptional: true,
    cell: ({ createdBy }) => <Actor id={createdBy} names={names} />,
    text: ({ createdBy }) => personName(names, createdBy),
  },
  {
    id: 'startedAt',
    header: 'Started',
    width: 116,
    isOptional: true,
    cell: ({ startedAt }) => <Time value={startedAt} />,
    text: ({ startedAt }) => startedAt ?? '',
  },
  {
    id: 'finishedAt',
    header: 'Ended',
    width: 116,
    isOptional: true,
    cell: ({ finishedAt }) => <Time value={finishedAt} />,
    text: ({ finishedAt }) => finishedAt ?? '',
  },
];

/** The columns of lists of jobs. */
export const jobColumns = (names: Names): GridColumn<JobSummary>[] => [
  {
    id: 'status',
    header: 'Status',
    width: 116,
    grow: 0,
    cell: ({ status }) => <StatusBadge status={status} />,
    text: ({ status }) => status,
  },
  {
    id: 'type',
    header: 'Type',
    width: 150,
    cell: ({ id, type }) => <RecordLink id={id} label={type} />,
    text: ({ type }) => type,
  },
  {
    id: 'latest',
    header: 'Latest',
    width: 180,
    grow: 3,
    hideBelow: 760,
    cell: Latest,
    text: latestText,
  },
  {
    id: 'source',
    header: 'Started by',
    width: 170,
    grow: 2,
    hideBelow: 900,
    cell: (job) => <CreatedBy job={job} names={names} />,
    text: ({ source: { kind, id }, createdBy }) =>
      kind === 'api'
        ? personName(names, createdBy)
        : `${sourceLabel(kind)} ${id === null ? '' : (labelOf(names, id) ?? id)}`,
  },
  ...TIME_COLUMNS,
  ...optionalColumns(names),
];
