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
import { accountsListQuery } from '../accountsSearch.ts';
import { NewButton } from '../NewButton.tsx';
import { serviceColumns } from './serviceColumns.tsx';
import { SERVICE_FILTERS } from './serviceFilters.ts';
import { SERVICES_KEY, type ServiceAccount, type ServiceAccountsQuery } from './serviceQueries.ts';

const route = getRouteApi('/frame/access/service-accounts');

const LIST = [...SERVICES_KEY, 'list'];
const NEW = '/access/service-accounts/new';

const keyOf = ({ id }: ServiceAccount): string => id;

/** Accounts of programs, and who is responsible for them. */
export function ServicesPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const list = useList<ServiceAccount>({
    queryKey: [...LIST, withoutAppearance(search)],
    read: (part, signal, now) => {
      const query = {
        ...accountsListQuery(toQuery<ServiceAccountsQuery>(SERVICE_FILTERS, search, now, part)),
        include: 'labels,people',
      };
      return answer(api.GET('/api/service-accounts', { params: { query }, signal }));
    },
  });
  useLiveRefresh(['auth.user.*'], LIST);
  useShortcuts(
    useSession().canAnywhere('user:write')
      ? [{ keys: 'c', label: 'New service account', run: () => void navigate({ to: NEW }) }]
      : [],
  );
  const columns = useMemo(() => serviceColumns(list.names), [list.names]);
  const open = useCallback(
    ({ id }: ServiceAccount) =>
      void navigate({ to: '/access/service-accounts/$accountId', params: { accountId: id } }),
    [navigate],
  );
  const create = (
    <NewButton to={NEW} permission="user:write">
      New service account
    </NewButton>
  );
  return (
    <ListPage
      title="Service accounts"
      noun={['service account', 'service accounts']}
      permission="user:read"
      views={<AccessNav view="/access/service-accounts" />}
      actions={create}
      list={list}
      filters={SERVICE_FILTERS}
      search={search}
      onSearch={(next: ListSearch) => void navigate({ search: next, replace: true })}
      columns={columns}
      rowKey={keyOf}
      onOpen={open}
      empty={
        <Empty
          kind="nothing"
          title="No service accounts yet"
          detail="A service account is for a program that must keep working when you leave. It has an owner, roles and API tokens, but no password."
          action={create}
        />
      }
    />
  );
}
