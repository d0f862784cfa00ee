import { expect, test } from '@jest/globals';
import type { SamlConfig } from '../../../services/auth/providers/kinds/samlConfig.ts';
import verifySamlResponse from '../../../services/auth/providers/kinds/samlVerification.ts';
import { selfSigned } from '../../support/certificate.ts';
import { signedResponse, type SignedResponse } from '../../support/samlResponse.ts';

const { key, cert } = await selfSigned('idp');
const config = {
  entryPoint: 'https://idp.example/sso',
  idpEntityId: 'urn:idp',
  idpCertificates: [cert],
  wantResponseSigned: false,
  clockSkewSeconds: 30,
  displayNameAttribute: 'name',
  groupsAttribute: 'Role',
  allowPrivateNetwork: false,
} satisfies SamlConfig;

function verify(change: Partial<SignedResponse>) {
  const pending = {
    requestId: '_1',
    callbackUrl: 'https://sp.example/acs',
    audience: 'urn:sp',
    startedAt: new Date().toISOString(),
  };
  const samlResponse = signedResponse({
    ...pending,
    key,
    issuer: 'urn:idp',
    nameId: 'ada',
    ...change,
  });
  return verifySamlResponse({ config, pending, samlResponse });
}

const nameIdFormat = (name: string) => `urn:oasis:names:tc:SAML:2.0:nameid-format:${name}`;

test('a transient NameID is refused, others are the id of the person', async () => {
  expect(await verify({ nameIdFormat: nameIdFormat('transient') })).toEqual({
    refused: expect.stringMatching(/NameID is transient/),
  });
  for (const format of [nameIdFormat('persistent'), undefined])
    expect(await verify(format === undefined ? {} : { nameIdFormat: format })).toMatchObject({
      profile: { externalId: 'ada' },
    });
});
