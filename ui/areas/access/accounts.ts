import { answer, api, type Schemas } from '../../app/api.ts';
import type { Found } from '../../parts/list/search.ts';
import { accountName, labelOf, type Names } from '../../parts/names.ts';

const SHOWN = 20;
/** The service searches no shorter text. */
const SHORTEST_SEARCH = 3;

type Reading = { signal: AbortSignal };

/** `all`: people and service accounts. */
export type AccountKind = 'people' | 'all';

type Account = Pick<Schemas['User'], 'id' | 'displayName' | 'enabled'>;

const found = ({ id, displayName, enabled }: Account, name: string): Found => ({
  id,
  label: displayName,
  detail: enabled ? name : `${name}, disabled`,
});

/** Only readers of providers see their names. */
const foundPerson = (person: Schemas['User'], names: Names | undefined): Found => {
  const { username, providerId } = person;
  const provider =
    providerId === 'local' ? null : (labelOf(names, providerId, 'providers') ?? providerId);
  return found(person, accountName({ username, provider }));
};

const foundProgram = (program: Schemas['ServiceAccount']): Found =>
  found(program, `service account ${program.name}`);

/** Accounts by a text in their names; for a short text the newest ones. */
export async function findAccounts(
  text: string,
  signal: AbortSignal,
  kind: AccountKind = 'all',
): Promise<Found[]> {
  const isSearch = text.trim().length >= SHORTEST_SEARCH;
  const query = { limit: SHOWN, ...(isSearch && { q: text.trim() }) };
  const named = { ...query, include: 'labels' as const };
  const [people, programs] = await Promise.all([
    answer(api.GET('/api/users', { params: { query: named }, signal })),
    kind === 'people'
      ? { items: [] }
      : answer(api.GET('/api/service-accounts', { params: { query }, signal })),
  ]);
  return [
    ...people.items.map((person) => foundPerson(person, people.included)),
    ...programs.items.map(foundProgram),
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
    const query = { id: [id], limit: 1 };
    const params = { query: { ...query, include: 'labels' as const } };
    const people = await answer(api.GET('/api/users', { params, signal }));
    const [person] = people.items;
    if (person) return foundPerson(person, people.included);
    const { items } = await answer(api.GET('/api/service-accounts', { params: { query }, signal }));
    const [program] = items;
    return program ? foundProgram(program) : null;
  },
  staleTime: 10_000,
});
