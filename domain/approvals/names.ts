import { PLATFORM } from '../access/scope.ts';

/**
 * A normalized name of a person, and the tenant that gave it: the tenant of the account, or the one
 * for which a gateway names the actor. Null for the id of an account, which Holdfast gave.
 */
export type GivenName = { name: string; tenantId: string | null };

/**
 * Normalizes a name of an actor for comparison. One person may appear under several names: a
 * session is known by the user id, a gateway may send the user name or the e-mail address.
 */
export const normalizeName = (name: string): string => name.normalize('NFKC').trim().toLowerCase();

/** A name that only the tenant which gave it vouches for. Normalized names have no capitals. */
const foreignName = (tenantId: string, name: string): string => `TENANT:${tenantId}:${name}`;

/**
 * The names of a person as a request at `tenantId` records them. Names that this tenant or the
 * platform gave count against everybody. Names that another tenant gave count only against people
 * named by it: otherwise its administrator could keep others from deciding, with an account that is
 * named like them. Whoever acts at the platform was vouched for there.
 */
export const recordedNames = (names: readonly GivenName[], tenantId: string): string[] => [
  ...new Set(
    names.map(({ name, tenantId: giver }) =>
      giver === null || giver === tenantId || giver === PLATFORM || tenantId === PLATFORM
        ? name
        : foreignName(giver, name),
    ),
  ),
];

/**
 * The recorded names that mean this person. Their own names limit nobody else, so all of them count,
 * wherever they were given.
 */
export const namesMeaning = (names: readonly GivenName[]): string[] => [
  ...new Set(
    names.flatMap(({ name, tenantId }) =>
      tenantId === null ? [name] : [name, foreignName(tenantId, name)],
    ),
  ),
];

/** True if one of the recorded names of a person means the other. */
export const isSamePerson = (recorded: readonly string[], meaning: readonly string[]): boolean =>
  recorded.some((name) => meaning.includes(name));
