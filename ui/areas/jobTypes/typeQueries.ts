import { answer, api, type Schemas } from '../../app/api.ts';

export type JobType = Schemas['JobType'];
export type JobTypeWithVersions = Schemas['JobTypeWithVersions'];

type Reading = { signal: AbortSignal };

/** Runners come and go without an event. */
export const RUNNERS_MS = 10_000;

/** The roles of the installation, for those who may read them. */
export const rolesQuery = {
  queryKey: ['jobTypes', 'roles'],
  queryFn: ({ signal }: Reading) => answer(api.GET('/api/rbac/roles', { signal })),
  staleTime: 60_000,
};

/** A type with what runners have announced. */
export const typeQuery = (name: string) => ({
  queryKey: ['jobTypes', 'one', name],
  queryFn: ({ signal }: Reading) =>
    answer(
      api.GET('/api/job-types/{name}', {
        params: { path: { name }, query: { include: 'people' } },
        signal,
      }),
    ),
  refetchInterval: RUNNERS_MS,
});
