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
import { assignmentColumns } from './grantColumns.tsx';
import { ASSIGNMENT_FILTERS } from './grantFilters.ts';
import { GRANTS_KEY, type Assignment, type AssignmentsQuery } from './grantQueries.ts';
import { grantText } from './grantText.ts';

const route = getRouteApi('/frame/access/assignments');

const LIST = [...GRANTS_KEY, 'assignments', 'list'];
const NEW = '/access/assignments/new';

const keyOf = ({ id }: Assignment): string => id;

/** Which account has which role where. */
export function AssignmentsPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const list = useList<Assignment>({
    queryKey: [...LIST, withoutAppearance(search)],
    read: (part, signal, now) => {
      const query = {
        ...toQuery<AssignmentsQuery>(ASSIGNMENT_FILTERS, search, now, part),
        include: 'labels,people',
      };
      return answer(api.GET('/api/rbac/assignments', { params: { query }, signal }));
    },
  });
  useLiveRefresh(['rbac.assignment.*'], LIST);
  useShortcuts(
    useSession().canAnywhere('rbac:write')
      ? [{ keys: 'c', label: 'New assignment', run: () => void navigate({ to: NEW }) }]
      : [],
  );
  const columns = useMemo(() => assignmentColumns(list.names), [list.names]);
  const open = useCallback(
    ({ id }: Assignment) =>
      void navigate({ to: '/access/assignments/$assignmentId', params: { assignmentId: id } }),
    [navigate],
  );
  const create = (
    <NewButton to={NEW} permission="rbac:write">
      New assignment
    </NewButton>
  );
  return (
    <ListPage
      title="Assignments"
      noun={['assignment', 'assignments']}
      views={<AccessNav view="/access/assignments" />}
      actions={create}
      list={list}
      filters={ASSIGNMENT_FILTERS}
      search={search}
      onSearch={(next: ListSearch) => void navigate({ search: next, replace: true })}
      columns={columns}
      rowKey={keyOf}
      rowName={(grant) => grantText(grant, list.names)}
      onOpen={open}
      bulk={(ids, done) => <BulkRemove ids={ids} noun="assignment" done={done} />}
      empty={
        <Empty
          kind="nothing"
          title="No assignments that you may see"
          detail="An assignment grants a role to an account: everywhere, or at a tenant, a site or a device."
          action={create}
        />
      }
    />
  );
}
