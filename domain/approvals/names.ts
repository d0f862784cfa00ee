import { PLATFORM } from '../access/scope.ts';

/**
 * A normalized name of a person, and the tenant that assigned it: the tenant of the account, or the
 * one for which a gateway names the actor. Null for the id of an account, which Holdfast assigned.
 */
export type GivenName = { name: string; tenantId: string | null };

/**
 * Normalizes a name of an actor for comparison. One person may appear under several names: a
 * session is known by the user id, a gateway may send the user name or the e-mail address.
 */
export const normalizeName = (name: string): string => name.normalize('NFKC').trim().toLowerCase();

/** A name that counts only for the tenant that assigned it. Normalized names have no capitals. */
const foreignName = (tenantId: string, name: string): string => `TENANT:${tenantId}:${name}`;

/**
 * The names of a person as a request at `tenantId` records them. Names that this tenant or the
 * platform assigned count against every decider. Names that another tenant assigned count only
 * against people named by it: otherwise its administrator could keep others from deciding, with an
 * account that is named like them. At the platform all names count: only the platform grants roles
 * there.
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
 * whichever tenant assigned them.
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
