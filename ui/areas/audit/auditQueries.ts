import { answer, api, type Schemas } from '../../app/api.ts';
import type { paths } from '../../app/schema.d.ts';
import { toQuery, type ListPart, type ListSearch } from '../../parts/list/search.ts';
import { AUDIT_FILTERS } from './auditFilters.ts';

export type AuditEntry = Schemas['AuditEntry'];
type AuditQuery = NonNullable<paths['/api/audit']['get']['parameters']['query']>;
type ExportQuery = NonNullable<paths['/api/audit/export']['get']['parameters']['query']>;

type Reading = { signal: AbortSignal };

const NAMES = 'labels,people';

/** Entries of the audit log, the newest first, with names instead of ids. */
export const readEntries = (search: ListSearch, now: Date, part: ListPart, signal: AbortSignal) => {
  const query = { ...toQuery<AuditQuery>(AUDIT_FILTERS, search, now, part), include: NAMES };
  return answer(api.GET('/api/audit', { params: { query }, signal }));
};

export const entryQuery = (id: string) => ({
  queryKey: ['audit', 'one', id],
  queryFn: ({ signal }: Reading) =>
    answer(
      api.GET('/api/audit/{id}', {
        params: { path: { id }, query: { include: NAMES } },
        signal,
      }),
    ),
  // An entry never changes, but it gets its seal a second after it was written.
  staleTime: 5_000,
});

/** The entries of a search as a stream of NDJSON, the oldest first. */
export const exportEntries = (search: ListSearch, now: Date, signal: AbortSignal) => {
  const { limit, ...query } = toQuery<ExportQuery & { limit?: number }>(
    AUDIT_FILTERS,
    search,
    now,
    { limit: 1 },
  );
  return answer(
    api.GET('/api/audit/export', { params: { query }, parseAs: 'stream', signal }),
  ) as Promise<unknown>;
};
