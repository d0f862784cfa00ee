import { isBuiltInName } from '../shared/builtInActors.ts';

/** Kinds of identity providers. */
export const PROVIDER_KINDS = ['local', 'ldap', 'oidc', 'saml'] as const;
export type ProviderKind = (typeof PROVIDER_KINDS)[number];

/** Id of the provider of local accounts, whose passwords Holdfast stores. It always exists. */
export const LOCAL_PROVIDER = 'local';

/** `providerId` of service accounts, which have no provider. */
export const NO_PROVIDER = 'service';

/** A person as an identity provider describes them after a successful login. */
export type Profile = {
  /** Stable id of the person at the provider: OIDC `sub`, SAML NameID, LDAP `entryUUID`. */
  externalId: string;
  username: string;
  displayName: string;
  email: string | null;
  groups: string[];
  /** When the provider ends the session, if it says so (ISO 8601). */
  sessionEndsAt?: string;
};

/** The name under which readers see a person. Many people choose it at their provider: none is shown as Holdfast itself. */
export const shownName = ({ displayName, username, externalId }: Profile): string =>
  [displayName, username].find((name) => !isBuiltInName(name)) ?? `${username} (${externalId})`;

/** Groups stored for one person; further ones are ignored, so mappings of them have no effect. */
export const MAX_GROUPS = 1_000;
const MAX_GROUP_LENGTH = 255;
const MAX_NAME_LENGTH = 255;

/** True for text with control characters or halves of surrogate pairs. The database cannot store all of it. */
const isUnprintable = (text: string): boolean => /[\p{Cc}\p{Cs}]/u.test(text);

/**
 * Group names from a claim or attribute: a list of strings or one string. Other values, empty names,
 * names over 255 characters and unprintable ones are ignored. The result is sorted and has no duplicates.
 */
export function parseGroups(value: unknown): string[] {
  const names = Array.isArray(value) ? (value as unknown[]) : [value];
  const usable = names.filter(
    (name): name is string =>
      typeof name === 'string' &&
      name !== '' &&
      name.length <= MAX_GROUP_LENGTH &&
      !isUnprintable(name),
  );
  return [...new Set(usable)].slice(0, MAX_GROUPS).sort();
}

/**
 * The value of the claim `name`. If no claim has this name, dots separate the keys of nested
 * objects: `realm_access.roles` (Keycloak). Undefined when there is no such claim.
 */
export function claimAt(claims: Readonly<Record<string, unknown>>, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  return name
    .split('.')
    .reduce<unknown>(
      (value, key) =>
        typeof value === 'object' && value !== null && Object.hasOwn(value, key)
          ? (value as Record<string, unknown>)[key]
          : undefined,
      claims,
    );
}

/** The first non-blank string, without what is unprintable, trimmed and truncated to 255 characters. */
export const firstNonEmptyText = (...values: readonly unknown[]): string | undefined =>
  values
    .filter((value) => typeof value === 'string')
    .map((value) => printable(value))
    .find((value) => value !== '');

const printable = (text: string): string =>
  text
    .replaceAll(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim()
    .slice(0, MAX_NAME_LENGTH)
    .replace(/\p{Cs}$/u, '');

/**
 * The provider's id of a person, unchanged: a truncated or trimmed id could belong to another
 * person. Throws `SignInRefused` if the value is missing, empty, unprintable or longer than 255 characters.
 */
export function parseExternalId(value: unknown): string {
  if (typeof value !== 'string' || value === '')
    throw new SignInRefused('the provider sent no id of the person');
  if (value.length > MAX_NAME_LENGTH)
    throw new SignInRefused(`the id of the person has more than ${MAX_NAME_LENGTH} characters`);
  if (isUnprintable(value)) throw new SignInRefused('the id of the person has control characters');
  return value;
}

/**
 * The provider, or a check of its response, refused a login. The message goes to the audit log; the
 * person who tried only sees that the login failed.
 */
export class SignInRefused extends Error {}

/** Result of one step of a provider's connection test. */
export type TestStep = {
  name: string;
  status: 'passed' | 'failed' | 'skipped';
  message: string;
  durationMs: number;
};
