import { Button } from '@mantine/core';
import { getRouteApi } from '@tanstack/react-router';
import { useCallback, useMemo } from 'react';
import { useLiveRefresh } from '../../app/live.ts';
import { useSession } from '../../app/session/useSession.ts';
import { useShortcuts } from '../../app/shortcuts.ts';
import { useTitle } from '../../app/useTitle.ts';
import { Empty } from '../../parts/Empty.tsx';
import { Icon } from '../../parts/icons.tsx';
import { ListPage } from '../../parts/list/ListPage.tsx';
import { withoutAppearance, type Filter, type ListSearch } from '../../parts/list/search.ts';
import { useList } from '../../parts/list/useList.ts';
import { BulkActions } from './bulk/BulkActions.tsx';
import { ImportButton } from './imports/ImportButton.tsx';
import { RecordExport } from './RecordExport.tsx';
import { PageLink } from '../../parts/PageLink.tsx';
import { usePermissions } from '../../parts/permissions.tsx';
import {
  DERIVED_MS,
  readRecords,
  resourceKey,
  USAGE_EVENTS,
  type InventoryRecord,
  type Resource,
} from './inventoryQueries.ts';
import { useListFields } from './listFields.ts';
import { recordColumns } from './recordColumns.tsx';
import { filtersOf, listQuery } from './resourceFilters.ts';
import { labelIn, titleOf } from './resources.ts';
import { SpaceLink } from './SpaceLink.tsx';
import { WithResource } from './WithResource.tsx';

const route = getRouteApi('/frame/inventory/$resource');

const keyOf = ({ id }: InventoryRecord): string => id;

/** The records of a resource, whichever it is: columns and filters are made from its description. */
export function ResourcePage() {
  const { resource: name } = route.useParams();
  return (
    <WithResource name={name}>
      {(resource, all) => <Listed key={name} resource={resource} all={all} />}
    </WithResource>
  );
}

/** The list with the custom fields of the tenant whose records it has. */
function Listed({ resource, all }: Omit<RecordsProps, 'note'>) {
  const offered = useListFields(resource, route.useSearch());
  return offered && <Records resource={offered.resource} all={all} note={offered.note} />;
}

/** What the address says; without an order by name, since that is how people look for records. */
function useSortedSearch({ label, sorts }: Resource): ListSearch {
  const search = route.useSearch();
  return useMemo(
    () => ({ ...(sorts.includes(label) && { sort: label }), ...search }),
    [label, sorts, search],
  );
}

/** The records that the address asks for, as they are now. */
function useRecords(resource: Resource, search: ListSearch) {
  const filters = useMemo(() => filtersOf(resource, search), [resource, search]);
  const key = [...resourceKey(resource.name), 'list'];
  const list = useList<InventoryRecord>({
    queryKey: [...key, withoutAppearance(search)],
    read: (part, signal, now) =>
      readRecords(resource.name, listQuery(filters, search, now, part), signal),
  });
  useLiveRefresh([`inventory.${resource.kind}.*`], key);
  const usage = resource.name === 'prefixes' ? USAGE_EVENTS : [];
  useLiveRefresh(usage, key, () => true, DERIVED_MS);
  return { filters, list };
}

type RecordsProps = { resource: Resource; all: readonly Resource[]; note: string | undefined };

function Records({ resource, all, note }: RecordsProps) {
  useTitle(titleOf(resource));
  const search = useSortedSearch(resource);
  const navigate = route.useNavigate();
  useShortcuts(
    useSession().canAnywhere('inventory:write')
      ? [
          {
            keys: 'c',
            label: `New ${resource.singular}`,
            run: () => void navigate(toNew(resource)),
          },
        ]
      : [],
  );
  const { filters, list } = useRecords(resource, search);
  const columns = useMemo(() => recordColumns(resource, list.names), [resource, list.names]);
  const open = useCallback(
    ({ id }: InventoryRecord) =>
      void navigate({
        to: '/inventory/$resource/$recordId',
        params: { resource: resource.name, recordId: id },
      }),
    [navigate, resource.name],
  );
  return (
    <ListPage
      title={titleOf(resource)}
      noun={[resource.singular, resource.plural]}
      permission="inventory:read"
      actions={<Actions resource={resource} filters={filters} search={search} />}
      list={list}
      filters={filters}
      search={search}
      onSearch={(next: ListSearch) => void navigate({ search: next, replace: true })}
      columns={columns}
      rowKey={keyOf}
      rowName={(record) => labelIn(resource, record)}
      onOpen={open}
      bulk={useBulkActions(resource, all, list.rows)}
      note={note}
      empty={
        <Empty
          kind="nothing"
          title={`No ${resource.plural} yet`}
          detail="Records are made here, by the API, or by an import."
          action={
            <>
              <NewButton resource={resource} /> <ImportButton resource={resource.name} />
            </>
          }
        />
      }
    />
  );
}

const toNew = ({ name }: Resource) =>
  ({ to: '/inventory/$resource/new', params: { resource: name } }) as const;

/** What can be done with selected rows; undefined for those who may change none. */
function useBulkActions(
  resource: Resource,
  all: readonly Resource[],
  rows: readonly InventoryRecord[] = [],
) {
  const { canAnywhere } = usePermissions();
  if (!canAnywhere('inventory:write')) return undefined;
  return (ids: ReadonlySet<string>, done: () => void) => (
    <BulkActions
      resource={resource}
      all={all}
      rows={rows.filter(({ id }) => ids.has(id))}
      ids={[...ids]}
      onDone={done}
    />
  );
}

type ActionsProps = { resource: Resource; filters: readonly Filter[]; search: ListSearch };

const Actions = ({ resource, filters, search }: ActionsProps) => (
  <>
    <SpaceLink resource={resource} />
    <ImportButton resource={resource.name} />
    <RecordExport resource={resource} filters={filters} search={search} />
    <NewButton resource={resource} />
  </>
);

/** Opens the form for a record; hidden from those who may create none. */
function NewButton({ resource }: { resource: Resource }) {
  const { canAnywhere } = usePermissions();
  if (!canAnywhere('inventory:write')) return null;
  return (
    <Button
      renderRoot={(props) => <PageLink {...props} {...toNew(resource)} />}
      leftSection={<Icon name="plus" size={14} />}
    >
      New {resource.singular}
    </Button>
  );
}
