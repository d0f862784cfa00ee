import { getRouteApi } from '@tanstack/react-router';
import { useCallback, useMemo } from 'react';
import { answer, api } from '../../../app/api.ts';
import { useLiveRefresh } from '../../../app/live.ts';
import { useSession } from '../../../app/session/useSession.ts';
import { useShortcuts } from '../../../app/shortcuts.ts';
import { Empty } from '../../../parts/Empty.tsx';
import { ListPage } from '../../../parts/list/ListPage.tsx';
import { toQuery, withoutAppearance, type ListSearch } from '../../../parts/list/search.ts';
import { useList } from '../../../parts/list/useList.ts';
import { AccessNav } from '../AccessNav.tsx';
import { NewButton } from '../NewButton.tsx';
import { BulkRemove } from './BulkRemove.tsx';
import { mappingColumns } from './grantColumns.tsx';
import { MAPPING_FILTERS } from './grantFilters.ts';
import { GRANTS_KEY, type Mapping, type MappingsQuery } from './grantQueries.ts';
import { grantText } from './grantText.ts';

const route = getRouteApi('/frame/access/mappings');

const LIST = [...GRANTS_KEY, 'mappings', 'list'];
const NEW = '/access/mappings/new';

const keyOf = ({ id }: Mapping): string => id;

/** Which roles the members of groups of identity providers have. */
export function MappingsPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const list = useList<Mapping>({
    queryKey: [...LIST, withoutAppearance(search)],
    read: (part, signal, now) => {
      const query = {
        ...toQuery<MappingsQuery>(MAPPING_FILTERS, search, now, part),
        include: 'labels,people',
      };
      return answer(api.GET('/api/rbac/provider-mappings', { params: { query }, signal }));
    },
  });
  useLiveRefresh(['rbac.mapping.*'], LIST);
  useShortcuts(
    useSession().canAnywhere('rbac:write')
      ? [{ keys: 'c', label: 'New mapping', run: () => void navigate({ to: NEW }) }]
      : [],
  );
  const columns = useMemo(() => mappingColumns(list.names), [list.names]);
  const open = useCallback(
    ({ id }: Mapping) =>
      void navigate({ to: '/access/mappings/$mappingId', params: { mappingId: id } }),
    [navigate],
  );
  const create = (
    <NewButton to={NEW} permission="rbac:write">
      New mapping
    </NewButton>
  );
  return (
    <ListPage
      title="Group mappings"
      noun={['mapping', 'mappings']}
      views={<AccessNav view="/access/mappings" />}
      actions={create}
      list={list}
      filters={MAPPING_FILTERS}
      search={search}
      onSearch={(next: ListSearch) => void navigate({ search: next, replace: true })}
      columns={columns}
      rowKey={keyOf}
      rowName={(grant) => grantText(grant, list.names)}
      onOpen={open}
      bulk={(ids, done) => <BulkRemove ids={ids} noun="mapping" done={done} />}
      empty={
        <Empty
          kind="nothing"
          title="No mappings that you may see"
          detail="A mapping grants a role to the members of a group of an identity provider, as long as they are in the group."
          action={create}
        />
      }
    />
  );
}
