import { getRouteApi } from '@tanstack/react-router';
import { useCallback } from 'react';
import { answer, api } from '../../../app/api.ts';
import { useLiveRefresh } from '../../../app/live.ts';
import { useSession } from '../../../app/session/useSession.ts';
import { useShortcuts } from '../../../app/shortcuts.ts';
import { ListPage } from '../../../parts/list/ListPage.tsx';
import { toQuery, withoutAppearance, type ListSearch } from '../../../parts/list/search.ts';
import { useList } from '../../../parts/list/useList.ts';
import { AccessNav } from '../AccessNav.tsx';
import { NewButton } from '../NewButton.tsx';
import { PROVIDER_COLUMNS } from './providerColumns.tsx';
import { PROVIDER_FILTERS } from './providerFilters.ts';
import { PROVIDERS_KEY, type Provider, type ProvidersQuery } from './providerQueries.ts';

const route = getRouteApi('/frame/access/providers');

const LIST = [...PROVIDERS_KEY, 'list'];
const NEW = '/access/providers/new';

const keyOf = ({ id }: Provider): string => id;

/** Where users authenticate. */
export function ProvidersPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const list = useList<Provider>({
    queryKey: [...LIST, withoutAppearance(search)],
    read: (part, signal, now) => {
      const query = toQuery<ProvidersQuery>(PROVIDER_FILTERS, search, now, part);
      return answer(api.GET('/api/auth/providers', { params: { query }, signal }));
    },
  });
  useLiveRefresh(['auth.provider.*'], LIST);
  useShortcuts(
    useSession().canAnywhere('auth:write')
      ? [{ keys: 'c', label: 'New identity provider', run: () => void navigate({ to: NEW }) }]
      : [],
  );
  const open = useCallback(
    ({ id }: Provider) =>
      void navigate({ to: '/access/providers/$providerId', params: { providerId: id } }),
    [navigate],
  );
  return (
    <ListPage
      title="Identity providers"
      noun={['identity provider', 'identity providers']}
      permission="auth:read"
      views={<AccessNav view="/access/providers" />}
      actions={
        <NewButton to={NEW} permission="auth:write">
          New identity provider
        </NewButton>
      }
      list={list}
      filters={PROVIDER_FILTERS}
      search={search}
      onSearch={(next: ListSearch) => void navigate({ search: next, replace: true })}
      columns={PROVIDER_COLUMNS}
      rowKey={keyOf}
      onOpen={open}
      // There are always the local accounts.
      empty={undefined}
    />
  );
}
