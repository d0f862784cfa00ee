import { answer, api, type Schemas } from '../../../app/api.ts';
import type { paths } from '../../../app/schema.d.ts';

export type ServiceAccount = Schemas['ServiceAccount'];
export type ServiceAccountsQuery = NonNullable<
  paths['/api/service-accounts']['get']['parameters']['query']
>;

type Reading = { signal: AbortSignal };

export const SERVICES_KEY = ['access', 'services'] as const;

export const serviceQuery = (id: string) => ({
  queryKey: [...SERVICES_KEY, 'one', id],
  queryFn: ({ signal }: Reading) =>
    answer(
      api.GET('/api/service-accounts/{id}', {
        params: { path: { id }, query: { include: 'labels,people' } },
        signal,
      }),
    ),
});
