import { Type, type Static } from 'typebox';
import { isCertificateBundle } from './certificates.ts';
import type { ProviderKindDefinition } from './kind.ts';

const Dn = (description: string) => Type.String({ minLength: 1, maxLength: 1_024, description });
const AttributeName = (defaultValue: string, description: string) =>
  Type.String({
    pattern: '^[A-Za-z][A-Za-z0-9;-]{0,63}$',
    'x-rule': 'must be the name of an LDAP attribute',
    default: defaultValue,
    description,
  });
const LdapFilter = (defaultValue: string, description: string) =>
  Type.String({
    pattern: '^\\(.+\\)$',
    'x-rule': 'must be an LDAP filter in parentheses',
    maxLength: 1_024,
    default: defaultValue,
    description,
  });

const LdapConfig = Type.Object(
  {
    url: Type.String({
      pattern: '^ldaps?://[^/?#@\\\\]+$',
      'x-rule': 'must be a URL such as ldaps://ldap.example.net, without path and credentials',
      maxLength: 255,
      description: 'ldaps://host[:port], or ldap:// with startTls.',
    }),
    startTls: Type.Boolean({
      default: false,
      description: 'Starts TLS on an ldap:// connection before anything else is sent.',
    }),
    caCertificate: Type.Optional(
      Type.String({
        maxLength: 65_536,
        description: 'PEM of a private certificate authority.',
      }),
    ),
    allowPrivateNetwork: Type.Boolean({
      default: false,
      description: 'Allows private and loopback addresses.',
    }),
    bindDn: Type.Optional(Dn('Account for searching; anonymous if absent.')),
    bindPassword: Type.Optional(
      Type.String({ minLength: 1, maxLength: 1_024, description: 'Secret.' }),
    ),
    userBaseDn: Dn('Base of the search for people.'),
    userFilter: LdapFilter(
      '(uid={username})',
      'Filter for one person; {username} is replaced by the escaped user name.',
    ),
    idAttribute: AttributeName('entryUUID', 'Stable id of a person: entryUUID, objectGUID.'),
    usernameAttribute: AttributeName('uid', 'Shown as the user name.'),
    displayNameAttribute: AttributeName('cn', 'Shown as the name.'),
    emailAttribute: AttributeName('mail', 'E-mail address.'),
    groupBaseDn: Type.Optional(
      Dn('Base of the search for groups; if absent, memberOf of the person is used.'),
    ),
    memberOfBaseDn: Type.Optional(
      Dn(
        'Of memberOf, only groups below this DN count; if absent, all with the same name are one.',
      ),
    ),
    groupFilter: LdapFilter(
      '(member={dn})',
      "Filter for a person's groups; {dn} and {username} are replaced, escaped.",
    ),
    groupNameAttribute: AttributeName('cn', 'Name of a group, as in mappings.'),
    timeoutMs: Type.Integer({
      minimum: 500,
      maximum: 30_000,
      default: 5_000,
      description: 'Limit of one request, in milliseconds.',
    }),
  },
  { additionalProperties: false, title: 'LdapConfig' },
);
export type LdapConfig = Static<typeof LdapConfig>;

const IDENTITY = ['idAttribute', 'url', 'userBaseDn'];

export const ldapKind: ProviderKindDefinition = {
  kind: 'ldap',
  config: LdapConfig,
  secrets: ['bindPassword'],
  destinations: ['url', 'caCertificate', 'allowPrivateNetwork', 'startTls'],
  identity: IDENTITY,
  // An entryUUID or objectGUID belongs to one person in any directory; a uid may be another person in another one.
  identityOf: ({ idAttribute }) =>
    /^(entryUUID|objectGUID)$/i.test(String(idAttribute)) ? ['idAttribute'] : IDENTITY,
  validate: ({ url, startTls, caCertificate }) => [
    ...(String(url).startsWith('ldap:') && startTls !== true
      ? [
          {
            pointer: '/startTls',
            code: 'tls',
            message: 'is required with ldap://, because passwords must not be sent without TLS',
          },
        ]
      : []),
    // An empty text is none.
    ...(typeof caCertificate === 'string' &&
    caCertificate !== '' &&
    !isCertificateBundle(caCertificate)
      ? [
          {
            pointer: '/caCertificate',
            code: 'certificate',
            message: 'is not a certificate in PEM',
          },
        ]
      : []),
  ],
};
