import { getRouteApi } from '@tanstack/react-router';
import { useCallback } from 'react';
import { answer, api } from '../../app/api.ts';
import { useLiveRefresh } from '../../app/live.ts';
import { usePolling } from '../../app/usePolling.ts';
import { Empty } from '../../parts/Empty.tsx';
import { ListPage } from '../../parts/list/ListPage.tsx';
import type { ListSearch } from '../../parts/list/search.ts';
import { useList } from '../../parts/list/useList.ts';
import { TYPE_COLUMNS } from './typeColumns.tsx';
import { facetOf, listedTypes, TYPE_FILTERS } from './typeList.ts';
import { RUNNERS_MS, type JobType } from './typeQueries.ts';

const route = getRouteApi('/frame/job-types');

const keyOf = ({ name }: JobType): string => name;

/** All job types: those of Holdfast, and those that runners have announced. */
export function JobTypesPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const { columns, density, ...wanted } = search;
  const list = useList<JobType>({
    queryKey: ['jobTypes', 'list', wanted],
    read: async ({ facets = [] }, signal) => {
      // The API answers all of them in one page: there are a few hundred at most.
      const { items } = await answer(api.GET('/api/job-types', { signal }));
      const listed = listedTypes(items, search);
      return {
        items: listed,
        nextCursor: null,
        count: { value: listed.length, exact: true },
        facets: Object.fromEntries(facets.map((field) => [field, facetOf(items, field, search)])),
      };
    },
  });
  useLiveRefresh(['job-type.*'], ['jobTypes', 'list']);
  usePolling(['jobTypes', 'list'], RUNNERS_MS);
  const open = useCallback(
    ({ name }: JobType) => void navigate({ to: '/job-types/$name', params: { name } }),
    [navigate],
  );
  return (
    <ListPage
      title="Job types"
      noun={['job type', 'job types']}
      list={list}
      filters={TYPE_FILTERS}
      search={search}
      onSearch={(next: ListSearch) => void navigate({ search: next, replace: true })}
      columns={TYPE_COLUMNS}
      rowKey={keyOf}
      onOpen={open}
      empty={<Empty kind="hidden" title="No job types" />}
    />
  );
}
