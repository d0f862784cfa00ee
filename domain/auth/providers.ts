export const PROVIDER_KINDS = ['local', 'ldap', 'oidc', 'saml'] as const;
export type ProviderKind = (typeof PROVIDER_KINDS)[number];

/** The provider of accounts with a password here; every installation has it. */
export const LOCAL_PROVIDER = 'local';

/** What an identity provider says of a person who has signed in there. */
export type Profile = {
  /** The person's key at the provider: an OIDC `sub`, a SAML NameID, a directory's UUID. */
  externalId: string;
  username: string;
  displayName: string;
  email: string | null;
  groups: string[];
};

/** Groups of one person that are kept; a mapping to a role needs one of them. */
export const MAX_GROUPS = 1_000;
const MAX_GROUP_LENGTH = 255;
const MAX_NAME_LENGTH = 255;

/** Group names as a provider gives them: a list, one name, or something else, which is no group. */
export function groupsFrom(value: unknown): string[] {
  const names = Array.isArray(value) ? (value as unknown[]) : [value];
  const usable = names.filter(
    (name): name is string =>
      typeof name === 'string' && name !== '' && name.length <= MAX_GROUP_LENGTH,
  );
  return [...new Set(usable)].slice(0, MAX_GROUPS).sort();
}

/** A claim by its name, or by a path with dots where there is none of that name (`realm_access.roles`). */
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

/** The first of these that is a text, cut to what a record holds. */
export const firstText = (...values: readonly unknown[]): string | undefined =>
  values
    .find((value): value is string => typeof value === 'string' && value.trim() !== '')
    ?.trim()
    .slice(0, MAX_NAME_LENGTH);

/**
 * The key of a person, as it came: cut or trimmed, it could be somebody else's. Throws `SignInRefused` when there is
 * none, or one that no column holds.
 */
export function externalIdFrom(value: unknown): string {
  if (typeof value !== 'string' || value === '') throw new SignInRefused('the person has no key');
  if (value.length > MAX_NAME_LENGTH)
    throw new SignInRefused(`the key of the person has more than ${MAX_NAME_LENGTH} characters`);
  return value;
}

/** Why a sign-in at a provider was refused: for the audit trail and the log, never for whoever tried. */
export class SignInRefused extends Error {}

/** One step of a provider's test. */
export type TestStep = {
  name: string;
  status: 'passed' | 'failed' | 'skipped';
  message: string;
  durationMs: number;
};
