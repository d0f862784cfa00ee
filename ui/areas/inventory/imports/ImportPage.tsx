import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useLiveRefresh } from '../../../app/live.ts';
import { useTitle } from '../../../app/useTitle.ts';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { RecordPage } from '../../../parts/RecordPage.tsx';
import { StatusBadge } from '../../../parts/StatusBadge.tsx';
import { Reading } from '../../../parts/Reading.tsx';
import { ImportActions } from './ImportActions.tsx';
import { ImportFacts } from './ImportFacts.tsx';
import { ImportProgress } from './ImportProgress.tsx';
import { importKey, importQuery } from './importQueries.ts';
import { ImportRows } from './ImportRows.tsx';
import { titleOfImport } from './importText.ts';

const route = getRouteApi('/frame/inventory/imports/$importId');

const PARENT = { label: 'Imports', to: '/inventory/imports' };

/** An import or a dry run: how far it is, and what has come of each row. */
export function ImportPage() {
  const { importId } = route.useParams();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const { data: record, error, refetch } = useQuery(importQuery(importId));
  useTitle(record && titleOfImport(record));
  useLiveRefresh(['job.*'], importKey(importId), ({ subject }) => subject.id === record?.jobId);
  if (!record)
    return (
      <RecordPage parent={PARENT} title="Import" id={importId}>
        {error ? (
          <ProblemNote problem={error} retry={() => void refetch()} />
        ) : (
          <Reading height={320} label="Loading the import" />
        )}
      </RecordPage>
    );
  return (
    <RecordPage
      parent={PARENT}
      id={record.id}
      title={titleOfImport(record)}
      badge={<StatusBadge status={record.status} />}
      note={record.dryRun ? 'Nothing was written: this is what an import would do.' : undefined}
      actions={<ImportActions key={record.id} record={record} />}
      aside={<ImportFacts record={record} />}
    >
      {error && <ProblemNote problem={error} retry={() => void refetch()} hasData />}
      <ImportProgress record={record} />
      <ImportRows
        key={record.id}
        record={record}
        search={search}
        onSearch={(next) => void navigate({ search: next, replace: true })}
      />
    </RecordPage>
  );
}
