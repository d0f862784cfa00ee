import { Button } from '@mantine/core';
import { getRouteApi } from '@tanstack/react-router';
import { PageLink } from '../../parts/PageLink.tsx';
import { useCallback, useMemo } from 'react';
import { answer, api } from '../../app/api.ts';
import { useLiveRefresh } from '../../app/live.ts';
import { useSession } from '../../app/session/useSession.ts';
import { useShortcuts } from '../../app/shortcuts.ts';
import { Empty } from '../../parts/Empty.tsx';
import { Icon } from '../../parts/icons.tsx';
import { ListPage } from '../../parts/list/ListPage.tsx';
import { toQuery, withoutAppearance, type ListSearch } from '../../parts/list/search.ts';
import { useList } from '../../parts/list/useList.ts';
import { usePermissions } from '../../parts/permissions.tsx';
import { secretColumns } from './secretColumns.tsx';
import { SECRET_FILTERS } from './secretFilters.ts';
import type { Secret, SecretsQuery } from './secretQueries.ts';

const route = getRouteApi('/frame/secrets');

const keyOf = ({ id }: Secret): string => id;

/** Named secrets: who may receive them, and how old their values are. */
export function SecretsPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const list = useList<Secret>({
    queryKey: ['secrets', 'list', withoutAppearance(search)],
    read: (part, signal, now) => {
      const query = {
        ...toQuery<SecretsQuery>(SECRET_FILTERS, search, now, part),
        include: 'labels,people',
      };
      return answer(api.GET('/api/secrets', { params: { query }, signal }));
    },
  });
  useLiveRefresh(['secret.*'], ['secrets', 'list']);
  useShortcuts(
    useSession().canAnywhere('secret:write')
      ? [{ keys: 'c', label: 'New secret', run: () => void navigate({ to: '/secrets/new' }) }]
      : [],
  );
  const columns = useMemo(() => secretColumns(list.names), [list.names]);
  const open = useCallback(
    ({ id }: Secret) => void navigate({ to: '/secrets/$secretId', params: { secretId: id } }),
    [navigate],
  );
  return (
    <ListPage
      title="Secrets"
      noun={['secret', 'secrets']}
      permission="secret:read"
      actions={<NewSecretButton />}
      list={list}
      filters={SECRET_FILTERS}
      search={search}
      onSearch={(next: ListSearch) => void navigate({ search: next, replace: true })}
      columns={columns}
      rowKey={keyOf}
      onOpen={open}
      empty={
        <Empty
          kind="nothing"
          title="No secrets yet"
          detail={
            <>
              A secret is a value that jobs of runners get, such as the token of another system. A
              declared command asks for it with{' '}
              <code>{'secrets: {API_TOKEN: {secret: name}}'}</code>.
            </>
          }
          action={<NewSecretButton />}
        />
      }
    />
  );
}

/** Opens the form for a secret; hidden from those who may create none. */
function NewSecretButton() {
  const { canAnywhere } = usePermissions();
  if (!canAnywhere('secret:write')) return null;
  return (
    <Button
      renderRoot={(props) => <PageLink {...props} to="/secrets/new" />}
      leftSection={<Icon name="plus" size={14} />}
    >
      New secret
    </Button>
  );
}
