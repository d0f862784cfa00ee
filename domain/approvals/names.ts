import { PLATFORM } from '../access/scope.ts';

/**
 * A normalized name of a person, and the tenant that assigned it: the tenant of the account, or the
 * one for which a gateway names the actor. Null for the id of an account, which Holdfast assigned.
 * With `atProvider`, it is the id at an identity provider: the same id at another provider is another
 * person.
 */
export type GivenName = { name: string; tenantId: string | null; atProvider?: true };

/**
 * Normalizes a name of an actor for comparison. One person may appear under several names: a
 * session is known by the user id, a gateway may send the user name or the e-mail address.
 */
export const normalizeName = (name: string): string => name.normalize('NFKC').trim().toLowerCase();

/** A name that counts only for the tenant that assigned it. Normalized names have no capitals. */
const foreignName = (tenantId: string, name: string): string => `TENANT:${tenantId}:${name}`;

/** The id of a person at a provider, which means others by their other names only. */
const idAtProvider = (name: string): string => `ID:${name}`;

/**
 * The names of a person as a request at `tenantId` records them. Names that this tenant or the
 * platform assigned count against every decider. Names that another tenant assigned count only
 * against people named by it: otherwise its administrator could keep others from deciding, with an
 * account that is named like them. At the platform all names count: only the platform grants roles
 * there.
 */
export const recordedNames = (names: readonly GivenName[], tenantId: string): string[] => [
  ...new Set(
    names.map(({ name, tenantId: giver, atProvider }) => {
      const form = atProvider ? idAtProvider(name) : name;
      return giver === null || giver === tenantId || giver === PLATFORM || tenantId === PLATFORM
        ? form
        : foreignName(giver, form);
    }),
  ),
];

/**
 * The recorded names that mean this person. Their own names limit nobody else, so all of them count,
 * whichever tenant assigned them. Ids at providers are not compared with each other: equal ones of one
 * provider are one account, and of two providers two people.
 */
export const namesMeaning = (names: readonly GivenName[]): string[] => [
  ...new Set(
    names.flatMap(({ name, tenantId, atProvider }) => {
      const forms = atProvider ? [name] : [name, idAtProvider(name)];
      return tenantId === null
        ? forms
        : [...forms, ...forms.map((form) => foreignName(tenantId, form))];
    }),
  ),
];

/** True if one of the recorded names of a person means the other. */
export const isSamePerson = (recorded: readonly string[], meaning: readonly string[]): boolean =>
  recorded.some((name) => meaning.includes(name));
