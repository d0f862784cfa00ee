import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useCallback, useMemo } from 'react';
import { useLiveRefresh } from '../../../app/live.ts';
import { useSession } from '../../../app/session/useSession.ts';
import { useShortcuts } from '../../../app/shortcuts.ts';
import { Icon } from '../../../parts/icons.tsx';
import { ListPage } from '../../../parts/list/ListPage.tsx';
import type { ListSearch } from '../../../parts/list/search.ts';
import type { List } from '../../../parts/list/useList.ts';
import { PageLink } from '../../../parts/PageLink.tsx';
import { AccessNav } from '../AccessNav.tsx';
import { NewButton } from '../NewButton.tsx';
import { ROLE_COLUMNS } from './roleColumns.tsx';
import { listedRoles, roleFilters } from './roleList.ts';
import { ROLES_KEY, rolesQuery, type Role } from './roleQueries.ts';
import { usePermissionNames } from './usePermissionNames.ts';

const route = getRouteApi('/frame/access/roles');

const NEW = '/access/new-role';

const keyOf = ({ id }: Role): string => id;

/** The roles that pass the filters, as a list: the service answers all in one page. */
function useRoles(search: ListSearch): List<Role> {
  const { data, error, isFetching, refetch } = useQuery(rolesQuery);
  const rows = useMemo(() => data && listedRoles(data, search), [data, search]);
  return {
    rows,
    names: {},
    count: rows && { value: rows.length, exact: true },
    facets: {},
    wantFacets: () => undefined,
    loading: isFetching,
    error,
    hasMore: false,
    loadMore: () => undefined,
    retry: () => void refetch(),
    refresh: () => void refetch(),
    isOutdated: false,
  };
}

/** Roles of the installation, and own ones. */
export function RolesPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const permissions = usePermissionNames();
  const list = useRoles(search);
  useLiveRefresh(['rbac.role.*'], ROLES_KEY);
  useShortcuts(
    useSession().canAnywhere('rbac:write')
      ? [{ keys: 'c', label: 'New role', run: () => void navigate({ to: NEW }) }]
      : [],
  );
  const open = useCallback(
    ({ id }: Role) => void navigate({ to: '/access/roles/$roleId', params: { roleId: id } }),
    [navigate],
  );
  const names = permissions.join(' ');
  const filters = useMemo(() => roleFilters(names === '' ? [] : names.split(' ')), [names]);
  return (
    <ListPage
      title="Roles"
      noun={['role', 'roles']}
      views={<AccessNav view="/access/roles" />}
      actions={
        <>
          <CompareButton />
          <NewButton to={NEW} permission="rbac:write">
            New role
          </NewButton>
        </>
      }
      list={list}
      filters={filters}
      search={search}
      onSearch={(next: ListSearch) => void navigate({ search: next, replace: true })}
      columns={ROLE_COLUMNS}
      rowKey={keyOf}
      rowName={({ name }) => name}
      onOpen={open}
      bulk={(ids) => <CompareButton ids={ids} />}
      empty={undefined}
    />
  );
}

/** Opens the comparison of roles; without ids, of the first ones. */
function CompareButton({ ids }: { ids?: ReadonlySet<string> }) {
  const search = ids ? { roles: [...ids].join(',') } : {};
  return (
    <Button
      variant="default"
      leftSection={<Icon name="columns" size={14} />}
      renderRoot={(props) => <PageLink {...props} to="/access/compare-roles" search={search} />}
    >
      Compare
    </Button>
  );
}
