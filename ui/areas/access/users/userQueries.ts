import { answer, api, type Schemas } from '../../../app/api.ts';
import type { paths } from '../../../app/schema.d.ts';
import { problemFields } from '../../../parts/problems.ts';

export type User = Schemas['User'];
export type UserSession = Schemas['Session'];
export type UsersQuery = NonNullable<paths['/api/users']['get']['parameters']['query']>;

type Reading = { signal: AbortSignal };

export const USERS_KEY = ['access', 'users'] as const;

export const LOCAL_PROVIDER = 'local';

export const userQuery = (id: string) => ({
  queryKey: [...USERS_KEY, 'one', id],
  queryFn: ({ signal }: Reading) =>
    answer(
      api.GET('/api/users/{id}', {
        params: { path: { id }, query: { include: 'labels,people' } },
        signal,
      }),
    ),
});

/** Whether an id of an account is that of a service account: ids do not show it. */
export const isServiceQuery = (id: string) => ({
  queryKey: [...USERS_KEY, 'service', id],
  queryFn: ({ signal }: Reading): Promise<boolean> =>
    answer(api.GET('/api/service-accounts/{id}', { params: { path: { id } }, signal })).then(
      () => true,
      (error: unknown) => {
        if ([403, 404].includes(problemFields(error).status)) return false;
        throw error;
      },
    ),
});

/** At most 100: an older session ends when there are more. */
export const userSessionsQuery = (id: string) => ({
  queryKey: [...USERS_KEY, 'sessions', id],
  queryFn: ({ signal }: Reading) =>
    answer(
      api.GET('/api/users/{id}/sessions', {
        params: {
          path: { id },
          query: { limit: 100, sort: '-refreshedAt', include: 'labels' },
        },
        signal,
      }),
    ),
});
