import { generateKeyPairSync, verify } from 'node:crypto';
import { beforeAll, describe, expect, test } from '@jest/globals';
import type { ProviderOutbound } from '../../../platform/providerOutbound.ts';
import { ldapKind } from '../../../services/auth/providers/kinds/ldapConfig.ts';
import { createSaml } from '../../../services/auth/providers/kinds/saml.ts';
import { samlKind, type SamlConfig } from '../../../services/auth/providers/kinds/samlConfig.ts';
import { selfSigned } from '../../support/certificate.ts';

const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 });
const pkcs8 = rsa.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const body = pkcs8.replaceAll(/-----.*-----/g, '').trim();
const encrypted = { cipher: 'aes-256-cbc', passphrase: 'secret' };

let cert: string;
beforeAll(async () => {
  ({ cert } = await selfSigned('idp'));
});

const pointersOf = (errors: { pointer: string }[] = []) => errors.map(({ pointer }) => pointer);
const configOf = (more: Partial<SamlConfig> = {}): SamlConfig => ({
  entryPoint: 'https://idp.example.net/sso',
  idpEntityId: 'urn:idp',
  idpCertificates: [cert],
  wantResponseSigned: false,
  clockSkewSeconds: 30,
  groupsAttribute: 'groups',
  allowPrivateNetwork: false,
  ...more,
});

/** The URL of a sign-in. */
async function signIn(config: SamlConfig): Promise<URL> {
  const saml = createSaml({} as ProviderOutbound, { run: () => Promise.reject(new Error()) });
  const { url } = await saml.start(config, {
    relayState: 'state',
    callbackUrl: 'https://holdfast.example.net/callback',
    audience: 'urn:holdfast',
    now: new Date(),
  });
  return new URL(url);
}

describe('a private key of a SAML provider', () => {
  test.each<[string, string]>([
    ['PKCS #8', pkcs8],
    ['PKCS #1', rsa.privateKey.export({ type: 'pkcs1', format: 'pem' }).toString()],
    ['PKCS #8 with other line ends and a comment', `a key\n${pkcs8.replaceAll('\n', '\r\n')}`],
    ['base64', body.replaceAll('\n', '')],
    ['base64 in indented lines', body.replaceAll('\n', '\r\n  ')],
  ])('is accepted as %s, and signs requests', async (_, spPrivateKey) => {
    const config = configOf({ spPrivateKey });
    expect(samlKind.validate?.(config)).toEqual([]);
    const { search, searchParams } = await signIn(config);
    const signed = /SAMLRequest=.*(?=&Signature=)/.exec(search)?.[0] ?? '';
    const signature = Buffer.from(searchParams.get('Signature') ?? '', 'base64');
    expect(verify('RSA-SHA256', Buffer.from(signed), rsa.publicKey, signature)).toBe(true);
  });

  test.each<[string, string]>([
    ['any text', 'secret'],
    ['a public key', rsa.publicKey.export({ type: 'spki', format: 'pem' }).toString()],
    [
      'an encrypted key',
      rsa.privateKey.export({ type: 'pkcs8', format: 'pem', ...encrypted }).toString(),
    ],
    [
      'a key of another algorithm',
      generateKeyPairSync('ec', { namedCurve: 'P-256' })
        .privateKey.export({ type: 'pkcs8', format: 'pem' })
        .toString(),
    ],
    ['a part of a key', pkcs8.slice(0, 400)],
  ])('is refused as %s', (_, spPrivateKey) => {
    expect(pointersOf(samlKind.validate?.(configOf({ spPrivateKey })))).toEqual(['/spPrivateKey']);
  });

  test('that was saved before it was checked fails the test of the provider', async () => {
    const saml = createSaml(
      {
        httpFor: () => ({}),
        guardFor: () => ({ lookupFor: () => undefined }),
      } as unknown as ProviderOutbound,
      { run: () => Promise.reject(new Error()) },
    );
    const { steps } = await saml.test(configOf({ spPrivateKey: 'secret' }));
    expect(steps[0]).toMatchObject({
      name: 'certificates',
      status: 'failed',
      message: expect.stringContaining('spPrivateKey'),
    });
  });
});

test('a certificate of a SAML provider is accepted in base64 in lines, and used', async () => {
  const lines = cert.replaceAll(/-----.*-----/g, '').trim();
  const idpCertificates = [lines.replaceAll('\n', '\r\n  ')];
  expect(samlKind.validate?.(configOf({ idpCertificates }))).toEqual([]);
  expect((await signIn(configOf({ idpCertificates }))).host).toBe('idp.example.net');
});

test('the authority of an LDAP provider is one or several certificates in PEM', () => {
  const check = (caCertificate: string) =>
    pointersOf(ldapKind.validate?.({ url: 'ldaps://ldap.example.net', caCertificate }));
  for (const accepted of ['', cert, `root\n${cert}\nother\n${cert}`])
    expect(check(accepted)).toEqual([]);
  const base64 = cert.replaceAll(/-----.*-----/g, '').trim();
  for (const refused of ['root', base64, pkcs8, `${cert}\n${cert.replace('M', '!')}`])
    expect([refused, check(refused)]).toEqual([refused, ['/caCertificate']]);
});
