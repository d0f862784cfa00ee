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

const attribute = (name: string, ...values: string[]) =>
  `<Attribute Name="${name}">${values
    .map((value) => `<AttributeValue>${value}</AttributeValue>`)
    .join('')}</Attribute>`;
const statement = (...attributes: string[]) =>
  `<AttributeStatement>${attributes.join('')}</AttributeStatement>`;

test.each([
  ['in one element', statement(attribute('Role', 'a', 'b', 'c'))],
  ['in one element each', statement(...['a', 'b', 'c'].map((value) => attribute('Role', value)))],
  [
    'in several statements',
    statement(attribute('Role', 'c', 'a')) + statement(attribute('Role', 'b')),
  ],
])('all groups count that a response names %s', async (_where, statements) => {
  expect(await verify({ statements })).toMatchObject({ profile: { groups: ['a', 'b', 'c'] } });
});

test('attributes without a value are absent, and of several names the first counts', async () => {
  const statements = statement(
    attribute('name'),
    attribute('name', 'Ada'),
    attribute('name', 'Eve'),
  );
  expect(await verify({ statements })).toEqual({
    profile: { externalId: 'ada', username: 'ada', displayName: 'Ada', email: null, groups: [] },
  });
});

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

test('the session ends when the provider says so, and a session that has ended is refused', async () => {
  const authn = (...ends: Date[]) =>
    ends
      .map((end) => `<AuthnStatement SessionNotOnOrAfter="${end.toISOString()}"></AuthnStatement>`)
      .join('');
  const [past, soon, later] = [-1, 60, 120].map((s) => new Date(Date.now() + s * 1_000)) as [
    Date,
    Date,
    Date,
  ];
  expect(await verify({ statements: authn(later, soon) })).toMatchObject({
    profile: { sessionEndsAt: soon.toISOString() },
  });
  for (const statements of [authn(past, later), authn(later).replace(/"[^"]*"/, '"soon"')])
    expect(await verify({ statements })).toEqual({
      refused: 'the session at the provider has ended',
    });
  const profile = await verify({ statements: '<AuthnStatement></AuthnStatement>' });
  expect(profile).not.toHaveProperty('profile.sessionEndsAt');
});
