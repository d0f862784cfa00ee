import { answer, api, type Schemas } from '../../../app/api.ts';

export type Role = Schemas['Role'];
export type Permission = Schemas['Permission'];

type Reading = { signal: AbortSignal };

export const ROLES_KEY = ['access', 'roles'] as const;

/** All roles: the service answers them in one page, those of the installation first. */
export const rolesQuery = {
  queryKey: [...ROLES_KEY, 'all'],
  queryFn: async ({ signal }: Reading): Promise<Role[]> =>
    (await answer(api.GET('/api/rbac/roles', { signal }))).items,
  staleTime: 5_000,
};

export const roleQuery = (id: string) => ({
  queryKey: [...ROLES_KEY, 'one', id],
  queryFn: ({ signal }: Reading) =>
    answer(api.GET('/api/rbac/roles/{id}', { params: { path: { id } }, signal })),
});

/** Job types that a role must name before their jobs can be created, and the areas of types. */
export const grantedTypesQuery = {
  queryKey: ['access', 'job-types'],
  queryFn: async ({ signal }: Reading) =>
    (await answer(api.GET('/api/job-types', { signal }))).items.filter(
      ({ access }) => access === 'granted',
    ),
  staleTime: 60_000,
  retry: false,
};
