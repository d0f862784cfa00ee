import { getRouteApi } from '@tanstack/react-router';
import { useCallback, useMemo } from 'react';
import { useQuery } from '@tanstack/react-query';
import { usePolling } from '../../app/usePolling.ts';
import { serverNow } from '../../parts/clock.ts';
import { Empty } from '../../parts/Empty.tsx';
import { ListPage } from '../../parts/list/ListPage.tsx';
import { withoutAppearance, type ListSearch } from '../../parts/list/search.ts';
import { useList } from '../../parts/list/useList.ts';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { Time } from '../../parts/Time.tsx';
import { auditColumns } from './auditColumns.tsx';
import { AUDIT_FILTERS } from './auditFilters.ts';
import { readEntries, type AuditEntry } from './auditQueries.ts';
import { ExportButton } from './ExportButton.tsx';
import { useAuditExport } from './useAuditExport.ts';
import classes from './Audit.module.css';

const route = getRouteApi('/frame/audit');

const LIST = ['audit', 'list'];
/** Entries are no events: the list is read again. */
const REFRESH_MS = 15_000;

const keyOf = ({ id }: AuditEntry): string => id;

/** Who has done what, and what was refused. */
export function AuditPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const wanted = withoutAppearance(search);
  const list = useList<AuditEntry>({
    queryKey: [...LIST, wanted],
    read: (part, signal, now) => readEntries(search, now, part, signal),
  });
  usePolling(LIST, REFRESH_MS);
  const columns = useMemo(() => auditColumns(list.names), [list.names]);
  const file = useAuditExport(search);
  const open = useCallback(
    ({ id }: AuditEntry) => void navigate({ to: '/audit/$entryId', params: { entryId: id } }),
    [navigate],
  );
  return (
    <ListPage
      title="Audit"
      noun={['entry', 'entries']}
      permission="audit:read"
      actions={<ExportButton {...file} />}
      list={list}
      filters={AUDIT_FILTERS}
      search={search}
      onSearch={(next: ListSearch) => void navigate({ search: next, replace: true })}
      columns={columns}
      rowKey={keyOf}
      onOpen={open}
      empty={
        <Empty
          kind="nothing"
          title="No entries"
          detail="Each change and each refused request has an entry here."
        />
      }
    >
      {file.problem !== undefined && <ProblemNote problem={file.problem} retry={file.download} />}
      <Archived search={search} />
    </ListPage>
  );
}

/** Where the entries are that are no longer in the database. */
function Archived({ search }: { search: ListSearch }) {
  const { data } = useQuery({
    queryKey: ['audit', 'archived', search.tenantId],
    queryFn: ({ signal }) =>
      readEntries({ tenantId: search.tenantId }, new Date(serverNow()), { limit: 1 }, signal),
    staleTime: 60_000,
  });
  const archive = data?.archived;
  if (!archive) return null;
  return (
    <p className={classes.muted}>
      Entries until <Time value={archive.until} format="full" /> are in the archive{' '}
      <code>{archive.archive}</code>, and those before it in earlier ones.
    </p>
  );
}
