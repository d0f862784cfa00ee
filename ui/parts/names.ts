import { ownValue } from './ownValue.ts';

/**
 * Many may have the same display name, and may choose it themselves. No two local accounts have the same user
 * name; `provider` says where another account has it.
 */
export type Person = { displayName: string; username?: string; provider?: string | null };

/** What `include=labels,people` adds to a response: labels by kind and id, and people by id. */
export type Names = {
  labels?: Readonly<Record<string, Readonly<Record<string, string>> | undefined>> | undefined;
  people?: Readonly<Record<string, Person | undefined>> | undefined;
};

/** Instead of the id of a tenant: a record is shared with all. */
export const EVERY_TENANT = '*';
export const EVERY_TENANT_LABEL = 'Every tenant';

/** The label of a record of `kind`, or of any kind if that is not known; undefined if it has none. */
export function labelOf(names: Names | undefined, id: string, kind?: string): string | undefined {
  if (kind === 'tenants' && id === EVERY_TENANT) return EVERY_TENANT_LABEL;
  const labels = names?.labels;
  if (!labels) return undefined;
  if (kind !== undefined) return ownValue(ownValue(labels, kind), id);
  for (const byId of Object.values(labels)) {
    const label = ownValue(byId, id);
    if (label !== undefined) return label;
  }
  return undefined;
}

/** A person by the id of the account; undefined if the response does not name it. */
export const personOf = (names: Names | undefined, id: string): Person | undefined =>
  ownValue(names?.people, id);

/** The name of an account, or its id if it has none here. Holdfast itself is `system`. */
export const personName = (names: Names | undefined, id: string): string =>
  personOf(names, id)?.displayName ?? (id === 'system' ? 'Holdfast' : id);

/** A user name, with the provider of an account that is not a local one. */
export const accountName = ({
  username,
  provider,
}: {
  username: string;
  provider?: string | null | undefined;
}): string => (provider === null || provider === undefined ? username : `${username}, ${provider}`);

/** What an account has and no other of the same display name: its user name, or its id where that is not known. */
export function personKey(names: Names | undefined, id: string): string | undefined {
  const person = personOf(names, id);
  if (person?.username !== undefined) {
    const { username, provider } = person;
    const name = accountName({ username, provider });
    return name === person.displayName ? undefined : name;
  }
  return personName(names, id) === id || !id.startsWith('usr_') ? undefined : id;
}

/** Names of several responses; later ones win. What only one of them knows of a person is kept. */
export function mergeNames(all: readonly (Names | undefined)[]): Names {
  const labels = new Map<string, Record<string, string>>();
  const people = new Map<string, Person>();
  for (const names of all) {
    for (const [kind, byId] of Object.entries(names?.labels ?? {}))
      labels.set(kind, { ...labels.get(kind), ...byId });
    for (const [id, person] of Object.entries(names?.people ?? {}))
      if (person) people.set(id, { ...people.get(id), ...person });
  }
  return { labels: Object.fromEntries(labels), people: Object.fromEntries(people) };
}
