// The fields that are needed, without the types of the API: its client needs a browser.
type Provider = { id: string; kind: string; config: Readonly<Record<string, unknown>> };

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Where a provider is. */
export function serverText({ kind, config }: Provider): string {
  if (kind === 'ldap') return textOf(config.url);
  if (kind === 'oidc') return textOf(config.issuer);
  return kind === 'saml' ? textOf(config.idpEntityId) : '';
}

/** What must be registered at a provider, by its name there. */
export function registration(
  { id, kind, config }: Provider,
  origin: string,
): { label: string; value: string }[] {
  if (kind === 'oidc') {
    const callback = `${origin}/api/auth/oidc/callback`;
    return [
      {
        label: 'Redirect URI',
        value: config.ownCallback === true ? `${callback}/${id}` : callback,
      },
    ];
  }
  if (kind !== 'saml') return [];
  const metadata = `${origin}/api/auth/saml/metadata/${id}`;
  return [
    { label: 'Metadata', value: metadata },
    { label: 'Assertion consumer', value: `${origin}/api/auth/saml/callback` },
    { label: 'Audience', value: textOf(config.spEntityId) || metadata },
  ];
}

/** Claims or attributes of a person who is in these groups, as the settings of a provider name them. */
export function sampleClaims(
  { kind, config }: Provider,
  groups: readonly string[],
): Record<string, unknown> {
  if (kind === 'saml') return { [textOf(config.groupsAttribute) || 'groups']: [...groups] };
  if (kind !== 'oidc') return { groups: [...groups] };
  // Dots separate the keys of objects in objects.
  const keys = (textOf(config.groupsClaim) || 'groups').split('.');
  return keys.reduceRight<unknown>((inner, key) => ({ [key]: inner }), [...groups]) as Record<
    string,
    unknown
  >;
}
