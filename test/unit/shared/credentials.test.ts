import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  credentialsIn,
  isCredentialName,
  maskCredentials,
  maskText,
} from '../../../domain/shared/credentials.ts';
import { propertyRuns } from '../../support/effort.ts';

const SECRET = 'hunter2-S3CRET';
const NAMES = [
  'password',
  'PassWord',
  'db_password',
  'user-passwd',
  'passphrase',
  'pwd',
  'token',
  'accessToken',
  'ACCESS_TOKEN',
  'access.token',
  'accesstoken',
  'refreshTokens',
  'secret',
  'clientSecret',
  'client secret',
  'webhookSecret2',
  'authorization',
  'Proxy-Authorization',
  'apiKey',
  'api_key',
  'api-key',
  'APIKEY',
  'X-API-Key',
  'private_key',
  'privateKey',
  'AWSSecretAccessKey',
  'pre-shared-key',
  'credentials',
  'Set-Cookie',
  'snmpCommunity',
  'sshKey',
  'hmac_key',
  'PIN',
  'pässwörd'.normalize('NFC'),
];

test.each(NAMES)('%s names a credential', (name) => {
  expect(isCredentialName(name)).toBe(true);
});

test.each([
  'name',
  'author',
  'authority',
  'key',
  'monkey',
  'primaryKey',
  'publicKey',
  'compass',
  'tokenType',
  'token_url',
  'maxTokens',
  'passwordPolicy',
  'community',
  'sshPublicKey',
  'ping',
])('%s does not', (name) => {
  expect(isCredentialName(name)).toBe(false);
});

describe('a credential is masked', () => {
  const nestings: [string, (name: string) => unknown][] = [
    ['as a field', (name) => ({ [name]: SECRET })],
    ['nested', (name) => ({ a: [{ b: { [name]: SECRET } }] })],
    ['as an object', (name) => ({ [name]: { user: SECRET, list: [SECRET] } })],
    ['as name and value', (name) => [{ name, value: SECRET }]],
    ['in JSON', (name) => ({ body: JSON.stringify({ a: { [name]: SECRET } }) })],
    ['in JSON in JSON', (name) => ({ body: JSON.stringify(JSON.stringify({ [name]: SECRET })) })],
    ['twice in JSON', (name) => `{"a":{"${name}":"${SECRET}"},"a":1}`],
    ['in JSON that is cut off', (name) => `{"a": 1, "${name}": "${SECRET}`],
    ['in JSON after other text', (name) => `answer: {"${name}": ["${SECRET}"]}`],
    ['in escaped JSON', (name) => `failed: "{\\"${name}\\":\\"${SECRET}\\"}"`],
  ];
  test.each(nestings)('%s', (_where, wrap) => {
    for (const name of NAMES.filter((each) => /^[\w.-]+$/.test(each))) {
      const masked = JSON.stringify(maskCredentials(wrap(name)));
      expect([name, masked]).toEqual([name, expect.not.stringContaining(SECRET)]);
      expect(masked).toContain('********');
    }
  });

  test.each([
    ['in a form', `user=bob&password=${SECRET}&x=1`, 'user=bob&password=********&x=1'],
    [
      'in a URL',
      `see https://h/p?x=1&api_key=${SECRET}#f`,
      'see https://h/p?x=1&api_key=********#f',
    ],
    ['in userinfo', `postgres://bob:${SECRET}@db/x`, 'postgres://bob:********@db/x'],
    ['as userinfo', `https://${SECRET}@host/`, 'https://********@host/'],
    ['in a connection string', `Server=h;Password=${SECRET};X=1`, 'Server=h;Password=********;X=1'],
    ['in a header', `Authorization: Digest a="${SECRET}"`, 'Authorization: ********'],
    ['after Bearer', `sent Bearer ${SECRET}`, 'sent Bearer ********'],
    ['in YAML', `user: bob\npassword: ${SECRET}\nx: 1`, 'user: bob\npassword: ********\nx: 1'],
    ['after a name in percent-encoding', `/?%70assword=${SECRET}&%=1`, '/?%70assword=********&%=1'],
    ['in quotes', `password="a ${SECRET}"`, 'password="********"'],
    [
      'in XML',
      `<u><Password a="1">${SECRET}</Password></u>`,
      '<u><Password a="1">********</Password></u>',
    ],
    [
      'as a private key',
      `a -----BEGIN PRIVATE KEY-----\n${SECRET}\n-----END PRIVATE KEY----- b`,
      'a ******** b',
    ],
    ['as a JSON Web Token', 'is eyJhbGciOiJI.eyJzdWIiOiIx.c2ln', 'is ********'],
  ])('in text: %s', (_where, text, masked) => {
    expect(maskText(text)).toBe(masked);
  });

  test('and listed, the longest first', () => {
    const payload = { url: 'https://h/?token=abc', body: '{"password":"abcdef"}', note: 'x=1' };
    expect(credentialsIn(payload)).toEqual(['abcdef', 'abc']);
  });
});

test('everything else stays as it is', () => {
  const payload = {
    hello: 'world',
    note: 'a: b, c = d; <e>f</e> https://h/p?x=1',
    hasPassword: true,
    token: null,
    tokenType: 'Bearer',
    count: 7,
    json: '{"a":  1}',
    key: 'value',
  };
  expect(maskCredentials(payload)).toEqual(payload);
});

test('any JSON value is masked without an error, twice like once', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), fc.string(), (value, text) => {
      const masked = maskCredentials({ value, text });
      expect(maskCredentials(masked)).toEqual(masked);
    }),
    { numRuns: propertyRuns(100) },
  );
  const deep = '['.repeat(50_000);
  expect(maskText(`${deep}${']'.repeat(50_000)} password=${SECRET}`)).not.toContain(SECRET);
  expect(maskText(`${deep}"password=${SECRET}"${']'.repeat(50_000)}`)).not.toContain(SECRET);
});

test.each([
  ['tokens', 'eyJaaaaaa-'],
  ['questions', '?'],
  ['parameters', '?a&'],
  ['backslashes', '\\'],
  ['quotes', '"'],
  ['names', 'a '],
  ['colons', 'password:'],
  ['tags', '<a '],
  ['keys', '-----BEGIN PRIVATE KEY-----'],
  ['schemes', 'a://b:'],
  ['brackets', 'token:['],
  ['equals', 'a.='],
  ['percent signs', '%='],
])('text of many %s takes no time that grows faster than the text', (_what, part) => {
  const long = part.repeat(Math.ceil(150_000 / part.length));
  for (const text of [long, `password:"${long}`, `{"password":"x", ${long}`, `cookie: ${long}`])
    expect(maskText(text)).toBeDefined();
});
