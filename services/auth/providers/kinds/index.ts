import { Type } from 'typebox';
import type { ProviderKind } from '../../../../domain/auth/providers.ts';
import type { Kind } from './kind.ts';
import { ldapKind } from './ldap.ts';
import { oidcKind } from './oidc.ts';
import { samlKind } from './saml.ts';

const localKind: Kind = {
  kind: 'local',
  secrets: [],
  destinations: [],
  config: Type.Object({}, { additionalProperties: false, title: 'LocalConfig' }),
};

/** Every kind of identity provider. */
export const KINDS: Readonly<Record<ProviderKind, Kind>> = {
  local: localKind,
  ldap: ldapKind,
  oidc: oidcKind,
  saml: samlKind,
};
