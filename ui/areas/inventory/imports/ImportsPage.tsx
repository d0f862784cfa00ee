import { getRouteApi } from '@tanstack/react-router';
import { useCallback, useMemo } from 'react';
import { useLiveRefresh } from '../../../app/live.ts';
import { useSession } from '../../../app/session/useSession.ts';
import { useShortcuts } from '../../../app/shortcuts.ts';
import { Empty } from '../../../parts/Empty.tsx';
import { ListPage } from '../../../parts/list/ListPage.tsx';
import { toQuery, withoutAppearance, type ListSearch } from '../../../parts/list/search.ts';
import { useList } from '../../../parts/list/useList.ts';
import { ImportButton } from './ImportButton.tsx';
import { importColumns } from './importColumns.tsx';
import { IMPORT_FILTERS } from './importFilters.ts';
import { IMPORTS, readImports, type Import, type ImportsQuery } from './importQueries.ts';

const route = getRouteApi('/frame/inventory/imports');

const LIST = [...IMPORTS, 'list'];
/** Rows are counted: not at each event. */
const REFRESH_MS = 2_000;

const keyOf = ({ id }: Import): string => id;

/** Files that were sent: dry runs and imports. */
export function ImportsPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const list = useList<Import>({
    queryKey: [...LIST, withoutAppearance(search)],
    read: (part, signal, now) =>
      readImports(toQuery<ImportsQuery>(IMPORT_FILTERS, search, now, part), signal),
  });
  useLiveRefresh(['job.*'], LIST, ({ data }) => data.type === 'inventory.import', REFRESH_MS);
  useShortcuts(
    useSession().canAnywhere('inventory:write')
      ? [
          {
            keys: 'c',
            label: 'Import a file',
            run: () => void navigate({ to: '/inventory/imports/new', search: {} }),
          },
        ]
      : [],
  );
  const columns = useMemo(() => importColumns(list.names), [list.names]);
  const open = useCallback(
    ({ id }: Import) =>
      void navigate({ to: '/inventory/imports/$importId', params: { importId: id } }),
    [navigate],
  );
  return (
    <ListPage
      title="Imports"
      noun={['import', 'imports']}
      permission="inventory:read"
      actions={<ImportButton variant="filled" />}
      list={list}
      filters={IMPORT_FILTERS}
      search={search}
      onSearch={(next: ListSearch) => void navigate({ search: next, replace: true })}
      columns={columns}
      rowKey={keyOf}
      onOpen={open}
      empty={
        <Empty
          kind="nothing"
          title="No imports yet"
          detail="A file of records is checked first, row by row. Then you decide. Reports are kept for 30 days."
          action={<ImportButton variant="filled" />}
        />
      }
    />
  );
}
