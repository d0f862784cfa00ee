import { getRouteApi } from '@tanstack/react-router';
import { useCallback, useMemo } from 'react';
import { TOKENS_KEY } from '../../../app/account/tokenQueries.ts';
import { answer, api } from '../../../app/api.ts';
import { useLiveRefresh } from '../../../app/live.ts';
import type { paths } from '../../../app/schema.d.ts';
import { usePolling } from '../../../app/usePolling.ts';
import { Empty } from '../../../parts/Empty.tsx';
import { ListPage } from '../../../parts/list/ListPage.tsx';
import { toQuery, withoutAppearance, type ListSearch } from '../../../parts/list/search.ts';
import { useList } from '../../../parts/list/useList.ts';
import { AccessNav } from '../AccessNav.tsx';
import { tokenColumns, type Token } from './tokenColumns.tsx';
import { TOKEN_FILTERS } from './tokenFilters.ts';

const route = getRouteApi('/frame/access/tokens');

type TokensQuery = NonNullable<paths['/api/auth/tokens']['get']['parameters']['query']>;

const LIST = [...TOKENS_KEY, 'list'];
/** Tokens are made, used and revoked without an event. */
const REFRESH_MS = 15_000;

const keyOf = ({ id }: Token): string => id;

/** The API tokens of all accounts. */
export function TokensPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const list = useList<Token>({
    queryKey: [...LIST, withoutAppearance(search)],
    read: (part, signal, now) => {
      const query = {
        ...toQuery<TokensQuery>(TOKEN_FILTERS, search, now, part),
        include: 'labels,people',
      };
      return answer(api.GET('/api/auth/tokens', { params: { query }, signal }));
    },
  });
  useLiveRefresh(['token.*'], LIST);
  usePolling(LIST, REFRESH_MS);
  const columns = useMemo(() => tokenColumns(list.names), [list.names]);
  const open = useCallback(
    ({ id }: Token) => void navigate({ to: '/access/tokens/$tokenId', params: { tokenId: id } }),
    [navigate],
  );
  return (
    <ListPage
      title="Tokens"
      noun={['token', 'tokens']}
      permission="user:read"
      views={<AccessNav view="/access/tokens" />}
      list={list}
      filters={TOKEN_FILTERS}
      search={search}
      onSearch={(next: ListSearch) => void navigate({ search: next, replace: true })}
      columns={columns}
      rowKey={keyOf}
      rowName={({ name }) => name}
      onOpen={open}
      empty={
        <Empty
          kind="nothing"
          title="No API tokens yet"
          detail="Users create their own on the page Account; tokens of service accounts are created on the page of the account."
        />
      }
    />
  );
}
