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
import { userColumns } from './userColumns.tsx';
import { USER_FILTERS } from './userFilters.ts';
import { USERS_KEY, type User, type UsersQuery } from './userQueries.ts';

const route = getRouteApi('/frame/access/users');

const LIST = [...USERS_KEY, 'list'];

const keyOf = ({ id }: User): string => id;

/** People who may sign in, or could. */
export function UsersPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const list = useList<User>({
    queryKey: [...LIST, withoutAppearance(search)],
    read: (part, signal, now) => {
      const query = {
        ...accountsListQuery(toQuery<UsersQuery>(USER_FILTERS, search, now, part)),
        include: 'labels',
      };
      return answer(api.GET('/api/users', { params: { query }, signal }));
    },
  });
  useLiveRefresh(['auth.user.*'], LIST);
  useShortcuts(
    useSession().canAnywhere('user:write')
      ? [{ keys: 'c', label: 'New user', run: () => void navigate({ to: '/access/users/new' }) }]
      : [],
  );
  const columns = useMemo(() => userColumns(list.names), [list.names]);
  const open = useCallback(
    ({ id }: User) => void navigate({ to: '/access/users/$userId', params: { userId: id } }),
    [navigate],
  );
  const create = (
    <NewButton to="/access/users/new" permission="user:write">
      New user
    </NewButton>
  );
  return (
    <ListPage
      title="Users"
      noun={['user', 'users']}
      permission="user:read"
      views={<AccessNav view="/access/users" />}
      actions={create}
      list={list}
      filters={USER_FILTERS}
      search={search}
      onSearch={(next: ListSearch) => void navigate({ search: next, replace: true })}
      columns={columns}
      rowKey={keyOf}
      onOpen={open}
      empty={
        <Empty
          kind="nothing"
          title="No users yet"
          detail="Create local accounts, or connect an identity provider: its users appear here with their first login."
          action={create}
        />
      }
    />
  );
}
