import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { answer, api, type Schemas } from '../api.ts';
import { useSession } from '../session/useSession.ts';

export type View = Schemas['View'];

/** More are found by the API. */
const MOST = 200;

/** The views of a list that the reader sees, by name. */
export function useViews(list: string) {
  const { tenant } = useSession();
  return useQuery({
    queryKey: ['views', tenant, list],
    queryFn: ({ signal }) =>
      answer(
        api.GET('/api/views', {
          params: { query: { list: [list], sort: 'name', limit: MOST } },
          signal,
        }),
      ),
    staleTime: 60_000,
    retry: false,
  });
}

type Change = Schemas['ViewChange'];

/** What can be done with a view. After each, the views of all lists are read again. */
export function useViewActions() {
  const client = useQueryClient();
  const refresh = () => client.invalidateQueries({ queryKey: ['views'] });
  const update = useMutation({
    mutationFn: ({ view: { id, version, isDefault }, change }: { view: View; change: Change }) =>
      answer(
        api.PUT('/api/views/{id}', {
          params: {
            path: { id },
            header: { 'If-Match': `"${version}.${isDefault ? 1 : 0}"` },
          },
          body: change,
        }),
      ),
    onSettled: refresh,
  });
  const remove = useMutation({
    mutationFn: ({ id }: View) =>
      answer(api.DELETE('/api/views/{id}', { params: { path: { id } } })),
    onSettled: refresh,
  });
  const setDefault = useMutation({
    mutationFn: ({ id, isDefault }: View) => {
      const params = { path: { id } };
      return answer(
        isDefault
          ? api.DELETE('/api/views/{id}/default', { params })
          : api.POST('/api/views/{id}/default', { params }),
      );
    },
    onSettled: refresh,
  });
  return { update, remove, setDefault, refresh };
}
