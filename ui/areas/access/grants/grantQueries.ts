import { answer, api, type Schemas } from '../../../app/api.ts';
import type { paths } from '../../../app/schema.d.ts';
import { mergeNames, type Names } from '../../../parts/names.ts';

export type Assignment = Schemas['Assignment'];
export type Mapping = Schemas['ProviderMapping'];
export type Grant = Assignment | Mapping;
export type AssignmentsQuery = NonNullable<
  paths['/api/rbac/assignments']['get']['parameters']['query']
>;
export type MappingsQuery = NonNullable<
  paths['/api/rbac/provider-mappings']['get']['parameters']['query']
>;

type Reading = { signal: AbortSignal };

export const GRANTS_KEY = ['access', 'grants'] as const;

const NAMES = 'labels,people';
const PAGE = 200;
/** A section that shows fewer than there are says so. */
const MAX_GRANTS = 1_000;

/** Grants with the names of what they refer to. */
export type Grants<G extends Grant> = { items: G[]; names: Names; isCut: boolean };

type Page<G> = { items: G[]; nextCursor: string | null; included?: Names | undefined };

async function readAll<G extends Grant>(
  read: (part: { limit: number; cursor?: string }) => Promise<Page<G>>,
): Promise<Grants<G>> {
  const pages: Page<G>[] = [];
  let cursor: string | null = null;
  do {
    const page: Page<G> = await read({ limit: PAGE, ...(cursor !== null && { cursor }) });
    pages.push(page);
    cursor = page.nextCursor;
  } while (cursor !== null && pages.length * PAGE < MAX_GRANTS);
  return {
    items: pages.flatMap(({ items }) => items),
    names: mergeNames(pages.map(({ included }) => included)),
    isCut: cursor !== null,
  };
}

type AssignmentFilter = Pick<AssignmentsQuery, 'userId' | 'roleId'>;
type MappingFilter = Pick<MappingsQuery, 'providerId' | 'externalGroup' | 'roleId'>;

/** The role assignments of an account or of a role. */
export const assignmentsQuery = (filter: AssignmentFilter) => ({
  queryKey: [...GRANTS_KEY, 'assignments', filter],
  queryFn: ({ signal }: Reading) =>
    readAll<Assignment>((part) => {
      const query = { ...filter, ...part, include: NAMES };
      return answer(api.GET('/api/rbac/assignments', { params: { query }, signal }));
    }),
});

/** The mappings of a provider or of a role. */
export const mappingsQuery = (filter: MappingFilter) => ({
  queryKey: [...GRANTS_KEY, 'mappings', filter],
  queryFn: ({ signal }: Reading) =>
    readAll<Mapping>((part) => {
      const query = { ...filter, ...part, include: NAMES };
      return answer(api.GET('/api/rbac/provider-mappings', { params: { query }, signal }));
    }),
});

export const assignmentQuery = (id: string) => ({
  queryKey: [...GRANTS_KEY, 'assignment', id],
  queryFn: ({ signal }: Reading) =>
    answer(
      api.GET('/api/rbac/assignments/{id}', {
        params: { path: { id }, query: { include: NAMES } },
        signal,
      }),
    ),
});

export const mappingQuery = (id: string) => ({
  queryKey: [...GRANTS_KEY, 'mapping', id],
  queryFn: ({ signal }: Reading) =>
    answer(
      api.GET('/api/rbac/provider-mappings/{id}', {
        params: { path: { id }, query: { include: NAMES } },
        signal,
      }),
    ),
});

const SHOWN_MEMBERS = 20;

/** The users who had a group at their last login: whom a mapping of it reaches. */
export const membersQuery = (providerId: string, group: string) => ({
  queryKey: ['access', 'users', 'members', providerId, group],
  queryFn: ({ signal }: Reading) =>
    answer(
      api.GET('/api/users', {
        params: { query: { providerId: [providerId], group, count: true, limit: SHOWN_MEMBERS } },
        signal,
      }),
    ),
});

/** Deletes a grant. */
export const removeGrant = ({ id }: Pick<Grant, 'id'>): Promise<unknown> =>
  id.startsWith('asg_')
    ? answer(api.DELETE('/api/rbac/assignments/{id}', { params: { path: { id } } }))
    : answer(api.DELETE('/api/rbac/provider-mappings/{id}', { params: { path: { id } } }));
