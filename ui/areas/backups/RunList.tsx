import { useNavigate } from '@tanstack/react-router';
import { useCallback, useMemo } from 'react';
import { Actor } from '../../parts/Actor.tsx';
import { AppLink } from '../../parts/AppLink.tsx';
import { Empty } from '../../parts/Empty.tsx';
import type { GridColumn } from '../../parts/grid/types.ts';
import { ListSection } from '../../parts/list/ListSection.tsx';
import { withoutAppearance, type ListSearch } from '../../parts/list/search.ts';
import { useList } from '../../parts/list/useList.ts';
import type { Names } from '../../parts/names.ts';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Time } from '../../parts/Time.tsx';
import { RUN_FILTERS } from './backupFilters.ts';
import { backupKey, readRuns, type RestoreRunSummary } from './backupQueries.ts';
import { countsText, purposeText } from './backupText.ts';

type Props = {
  backupId: string;
  search: ListSearch;
  onSearch: (search: ListSearch) => void;
};

const pathOf = ({ backupId, jobId }: RestoreRunSummary): string =>
  `/backups/${backupId}/runs/${jobId}`;

const keyOf = ({ jobId }: RestoreRunSummary): string => jobId;

/** The result of a run: its differences, or why it failed. */
function resultText({ counts, error, purpose }: RestoreRunSummary): string {
  if (error !== null) return error.message;
  if (counts !== null) return countsText(counts);
  return purpose === 'verify' ? 'Loaded, compared and migrated' : '';
}

const runColumns = (names: Names): GridColumn<RestoreRunSummary>[] => [
  {
    id: 'purpose',
    header: 'What',
    width: 110,
    grow: 0,
    cell: (run) => <AppLink to={pathOf(run)}>{purposeText(run.purpose)}</AppLink>,
    text: ({ purpose }) => purposeText(purpose),
  },
  {
    id: 'status',
    header: 'Status',
    width: 112,
    grow: 0,
    cell: ({ status }) => <StatusBadge status={status} />,
    text: ({ status }) => status,
  },
  {
    id: 'createdAt',
    header: 'Started',
    width: 116,
    grow: 0,
    hideBelow: 420,
    cell: ({ createdAt }) => <Time value={createdAt} />,
    text: ({ createdAt }) => createdAt,
  },
  {
    id: 'result',
    header: 'Result',
    width: 200,
    grow: 2,
    hideBelow: 560,
    cell: (run) => (run.status === 'running' || run.status === 'queued' ? '' : resultText(run)),
    text: resultText,
  },
  {
    id: 'createdBy',
    header: 'By',
    width: 120,
    hideBelow: 760,
    cell: ({ createdBy }) => <Actor id={createdBy} names={names} />,
    text: ({ createdBy }) => createdBy,
  },
  {
    id: 'sections',
    header: 'Sections',
    width: 160,
    isOptional: true,
    cell: ({ sections }) => sections.join(', '),
    text: ({ sections }) => sections.join(', '),
  },
];

/** Restores, previews and test restores of a backup, newest first. */
export function RunList({ backupId, search, onSearch }: Props) {
  const navigate = useNavigate();
  const list = useList<RestoreRunSummary>({
    queryKey: [...backupKey(backupId), 'runs', withoutAppearance(search)],
    read: (part, signal, now) => readRuns(backupId, search, now, part, signal),
  });
  const columns = useMemo(() => runColumns(list.names), [list.names]);
  const open = useCallback(
    (run: RestoreRunSummary) => void navigate({ to: pathOf(run) as '/' }),
    [navigate],
  );
  return (
    <ListSection
      title="History"
      noun={['entry', 'entries']}
      list={list}
      filters={RUN_FILTERS}
      search={search}
      onSearch={onSearch}
      columns={columns}
      rowKey={keyOf}
      onOpen={open}
      empty={
        <Empty
          kind="nothing"
          title="Neither restored nor tested"
          detail="A test restore loads the archive completely, compares it and changes nothing."
        />
      }
    />
  );
}
