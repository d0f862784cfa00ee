import { Type, type Static } from 'typebox';
import { isCertificate, isRsaKey } from './certificates.ts';
import type { ProviderKindDefinition } from './kind.ts';

const AttributeName = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: 255, description }));

const SamlConfig = Type.Object(
  {
    entryPoint: Type.String({
      pattern: '^https?://[^\\s#]+$',
      'x-rule': 'must be an http or https URL without fragment',
      maxLength: 2_048,
      description: 'Single sign-on URL of the provider (HTTP-Redirect).',
    }),
    idpEntityId: Type.String({
      minLength: 1,
      maxLength: 1_024,
      description: 'Issuer of its assertions.',
    }),
    idpCertificates: Type.Array(Type.String({ minLength: 1, maxLength: 16_384 }), {
      minItems: 1,
      maxItems: 5,
      description: 'PEM of the signing certificates; two while one is being replaced.',
    }),
    spEntityId: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1_024,
        description: 'Entity id and audience of Holdfast; by default its metadata URL.',
      }),
    ),
    spPrivateKey: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 16_384,
        description: 'Secret. PEM of the RSA key that signs requests; unsigned if absent.',
      }),
    ),
    metadataUrl: Type.Optional(
      Type.String({
        pattern: '^https?://[^\\s#]+$',
        'x-rule': 'must be an http or https URL without fragment',
        maxLength: 2_048,
        description: 'Metadata of the provider; read by the connection test only.',
      }),
    ),
    wantResponseSigned: Type.Boolean({
      default: false,
      description: 'Requires a signature of the response, too; assertions must always be signed.',
    }),
    clockSkewSeconds: Type.Integer({ minimum: 0, maximum: 300, default: 30 }),
    usernameAttribute: AttributeName('User name; by default the NameID.'),
    displayNameAttribute: AttributeName('Shown as the name.'),
    emailAttribute: AttributeName('E-mail address.'),
    groupsAttribute: Type.String({
      minLength: 1,
      maxLength: 255,
      default: 'groups',
      description: 'Attribute with the groups.',
    }),
    allowPrivateNetwork: Type.Boolean({
      default: false,
      description: 'Allows private and loopback addresses in the connection test.',
    }),
  },
  { additionalProperties: false, title: 'SamlConfig' },
);
export type SamlConfig = Static<typeof SamlConfig>;

export const samlKind: ProviderKindDefinition = {
  kind: 'saml',
  config: SamlConfig,
  secrets: ['spPrivateKey'],
  destinations: ['entryPoint', 'idpEntityId'],
  identity: ['idpEntityId'],
  validate: ({ idpCertificates, spPrivateKey }) => [
    ...(Array.isArray(idpCertificates) ? idpCertificates : []).flatMap((pem, i) =>
      isCertificate(String(pem))
        ? []
        : [
            {
              pointer: `/idpCertificates/${i}`,
              code: 'certificate',
              message: 'is not a certificate in PEM',
            },
          ],
    ),
    ...(typeof spPrivateKey !== 'string' || isRsaKey(spPrivateKey)
      ? []
      : [
          {
            pointer: '/spPrivateKey',
            code: 'private_key',
            message: 'is not an RSA private key in PEM without a passphrase',
          },
        ]),
  ],
};
