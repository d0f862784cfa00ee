import { Type } from 'typebox';
import type { ProviderKind } from '../../../../domain/auth/providers.ts';
import type { ProviderKindDefinition } from './kind.ts';
import { ldapKind } from './ldapConfig.ts';
import { oidcKind } from './oidc.ts';
import { samlKind } from './samlConfig.ts';

const localKind: ProviderKindDefinition = {
  kind: 'local',
  secrets: [],
  destinations: [],
  identity: [],
  config: Type.Object({}, { additionalProperties: false, title: 'LocalConfig' }),
};

/** All kinds of identity providers. */
export const KIND_DEFINITIONS: Readonly<Record<ProviderKind, ProviderKindDefinition>> = {
  local: localKind,
  ldap: ldapKind,
  oidc: oidcKind,
  saml: samlKind,
};
