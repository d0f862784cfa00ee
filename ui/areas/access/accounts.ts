import { answer, api } from '../../app/api.ts';
import type { Found } from '../../parts/list/search.ts';

const SHOWN = 20;
/** The service searches no shorter text. */
const SHORTEST_SEARCH = 3;

type Reading = { signal: AbortSignal };

/** `all`: people and service accounts. */
export type AccountKind = 'people' | 'all';

/** Accounts by a text in their names; for a short text the newest ones. */
export async function findAccounts(
  text: string,
  signal: AbortSignal,
  kind: AccountKind = 'all',
): Promise<Found[]> {
  const isSearch = text.trim().length >= SHORTEST_SEARCH;
  const query = { limit: SHOWN, ...(isSearch && { q: text.trim() }) };
  const [people, programs] = await Promise.all([
    answer(api.GET('/api/users', { params: { query }, signal })),
    kind === 'people'
      ? { items: [] }
      : answer(api.GET('/api/service-accounts', { params: { query }, signal })),
  ]);
  return [
    ...people.items.map(({ id, username, displayName }) => ({
      id,
      label: displayName,
      detail: username,
    })),
    ...programs.items.map(({ id, name, displayName }) => ({
      id,
      label: displayName,
      detail: `service account ${name}`,
    })),
  ];
}

export const accountsQuery = (text: string, kind: AccountKind) => ({
  queryKey: ['access', 'found', kind, text.trim().length >= SHORTEST_SEARCH ? text.trim() : ''],
  queryFn: ({ signal }: Reading) => findAccounts(text, signal, kind),
  staleTime: 10_000,
});

/** One account by its id: a person, or else a service account; null if there is none that the user may read. */
export const accountQuery = (id: string) => ({
  queryKey: ['access', 'found', 'one', id],
  queryFn: async ({ signal }: Reading): Promise<Found | null> => {
    const params = { query: { id: [id], limit: 1 } };
    const [person] = (await answer(api.GET('/api/users', { params, signal }))).items;
    if (person) return { id, label: person.displayName, detail: person.username };
    const { items } = await answer(api.GET('/api/service-accounts', { params, signal }));
    const [program] = items;
    return program
      ? { id, label: program.displayName, detail: `service account ${program.name}` }
      : null;
  },
  staleTime: 10_000,
});
