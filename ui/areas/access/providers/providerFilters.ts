import type { Filter } from '../../../parts/list/search.ts';

export const PROVIDER_KINDS: Readonly<Record<string, string>> = {
  local: 'Local accounts',
  ldap: 'LDAP or Active Directory',
  oidc: 'OpenID Connect',
  saml: 'SAML',
};

export const PROVIDER_FILTERS = [
  {
    id: 'kind',
    label: 'Kind',
    kind: 'choice',
    choices: Object.entries(PROVIDER_KINDS).map(([value, label]) => ({ value, label })),
    facet: true,
    inline: true,
  },
  { id: 'name', label: 'Name', kind: 'text', example: 'Company' },
  { id: 'createdAt', label: 'Created', kind: 'time' },
] as const satisfies readonly Filter[];
