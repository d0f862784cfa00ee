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

/** A view as it is now. Error: Problem, also if it was deleted. */
export const readView = (id: string): Promise<View> =>
  answer(api.GET('/api/views/{id}', { params: { path: { id } } }));

type Change = Schemas['ViewChange'];

/** The version of a view that a change is about. */
export const etagOf = ({ version }: View): string => `"${version}"`;

/** What can be done with a view. After each, the views of all lists are read again. */
export function useViewActions() {
  const client = useQueryClient();
  const refresh = () => client.invalidateQueries({ queryKey: ['views'] });
  const update = useMutation({
    mutationFn: ({ id, etag, change }: { id: string; etag: string; change: Change }) =>
      answer(
        api.PUT('/api/views/{id}', {
          params: { path: { id }, header: { 'If-Match': etag } },
          body: change,
        }),
      ),
    onSettled: refresh,
  });
  const remove = useMutation({
    mutationFn: (view: View) =>
      answer(
        api.DELETE('/api/views/{id}', {
          params: { path: { id: view.id }, header: { 'If-Match': etagOf(view) } },
        }),
      ),
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
