import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  credentialsIn,
  isCredentialName,
  maskCredentials,
  maskText,
  maskingSteps,
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

  test.each([
    ['a://b://c:pw@h', 'a://b://c:********@h'],
    ['https://null@h/ postgres://bob:true@db', 'https://********@h/ postgres://bob:********@db'],
    [
      'api key: v, "private key" : "w", xapi key: y',
      /^api key: \*+, "private key" : "\*+", xapi key: y$/,
    ],
    ['a.password=x;%70%69%6e=y', 'a.password=********;%70%69%6e=********'],
    ['cookie:\n"a"; b\nx', 'cookie:\n"********"; b\nx'],
    ['?a=1&auth=2?x=3#y', '?a=1&auth=********#y'],
    ['password: token : xyz', 'password: ******** : xyz'],
    ['bearer bearer abcdefgh', 'bearer bearer ********'],
    ['x{password:{a:1},b:2}', 'x{password:********,b:2}'],
    ['eyJabcde.a.b-eyJabcde.a.b eyJabcde.a.', '********.a.b ********'],
    ['<password/><pin >1<a>2', '<password/><pin >********<a>2'],
    [`${'p'.repeat(201)}assword=x`, `${'p'.repeat(201)}assword=x`],
  ])('in text, and nothing beside it: %j', (text, masked) => {
    expect(maskText(text)).toEqual(
      typeof masked === 'string' ? masked : expect.stringMatching(masked),
    );
  });

  test('in JSON in texts of many levels: the innermost are masked as a whole', () => {
    const nested = (levels: number) => {
      let text = JSON.stringify({ a: '=', password: SECRET });
      for (let level = 1; level < levels; level++) text = JSON.stringify({ a: text });
      return text;
    };
    expect(maskText(nested(4))).toContain('password');
    for (const levels of [4, 5, 6, 7, 12]) expect(maskText(nested(levels))).not.toContain(SECRET);
    expect(maskText(nested(12)).length).toBeLessThan(200);
  });

  test('under a name that is too long to search', () => {
    expect(maskCredentials({ ['é'.repeat(10_001)]: 'x' })).toEqual({
      ['é'.repeat(10_001)]: '********',
    });
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

describe('a long value is masked in steps, however it is made', () => {
  const CHARS = 200_000;
  const many = (part: (i: number) => string, separator = '') => {
    const parts: string[] = [];
    for (let length = 0; length < CHARS; length += (parts.at(-1) ?? '').length)
      parts.push(part(parts.length) + separator);
    return parts.join('');
  };
  const fields = (name: (i: number) => string, value: unknown) =>
    Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [name(i), value]));
  const values: [string, unknown][] = [
    ['short fields', fields((i) => `f${i}`, 1)],
    ['fields that are credentials', fields((i) => `pin_${i}`, 1)],
    ['fields in a credential', { password: fields(String, 1) }],
    ['long names of fields', fields((i) => `${'é'.repeat(20)}${i}`, 1)],
    ['numbers', Array.from({ length: 100_000 }, () => 1)],
    ['empty objects', Array.from({ length: 50_000 }, () => ({}))],
    ['short texts', Array.from({ length: 20_000 }, (_, i) => `a=${i}`)],
    ['pairs', many((i) => `${i}=b&`)],
    ['pairs of a query', many((i) => `?x${i}=`)],
    ['names in JSON that is cut off', `{${many(() => '"x": ')}`],
    ['elements', many((i) => `<x${i}>`)],
    ['credentials', many(() => 'password=x&')],
    ['users of URLs', many(() => 'a://b:c@')],
    ['JSON in a text', JSON.stringify(fields((i) => `f${i}=`, 1))],
    ['JSON in JSON in a text', JSON.stringify(JSON.stringify(fields((i) => `pin${i}`, 1)))],
    [
      'objects in JSON in a text',
      JSON.stringify(Array.from({ length: 50_000 }, () => ({ a: '=' }))),
    ],
  ];
  test.each(values)('%s', (_what, value) => {
    let count = 0;
    for (const _step of maskingSteps(value)) count++;
    expect(count).toBeGreaterThanOrEqual(15);
  });
});
