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
