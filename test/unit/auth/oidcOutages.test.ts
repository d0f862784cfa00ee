import { beforeAll, expect, test } from '@jest/globals';
import { exportJWK, generateKeyPair, SignJWT, type JWK } from 'jose';
import { OutboundError } from '../../../platform/addressGuard.ts';
import type { ProviderOutbound } from '../../../platform/providerOutbound.ts';
import { SignInRefused } from '../../../domain/auth/providers.ts';
import { createOidc, type OidcConfig } from '../../../services/auth/providers/kinds/oidc.ts';

const ISSUER = 'https://idp.example';
const CONFIG = {
  issuer: ISSUER,
  clientId: 'holdfast',
  scopes: [],
  usernameClaim: 'name',
  displayNameClaim: 'name',
  emailClaim: 'email',
  groupsClaim: 'groups',
  userInfo: true,
} as unknown as OidcConfig;
const PENDING = {
  state: 'the-state',
  nonce: 'the-nonce',
  codeVerifier: 'v'.repeat(43),
  redirectUri: 'https://sp.example/cb',
};

let key: Awaited<ReturnType<typeof generateKeyPair>>['privateKey'];
let jwk: JWK;
beforeAll(async () => {
  const pair = await generateKeyPair('RS256');
  key = pair.privateKey;
  jwk = { ...(await exportJWK(pair.publicKey)), kid: 'one', alg: 'RS256', use: 'sig' };
});

const ENDPOINTS = ['/token', '/keys', '/userinfo'] as const;
type Endpoint = (typeof ENDPOINTS)[number];
type Answer = () => Response | Promise<Response>;

/** Finishes a login with a provider of which one endpoint answers so. */
async function finish(endpoint?: Endpoint, answer?: Answer, query = 'code=c&state=the-state') {
  const idToken = await new SignJWT({ nonce: PENDING.nonce })
    .setProtectedHeader({ alg: 'RS256', kid: 'one' })
    .setIssuer(ISSUER)
    .setSubject('ada')
    .setAudience('holdfast')
    .setIssuedAt()
    .setExpirationTime('5m')
    .sign(key);
  const answers: Record<string, Answer> = {
    '/.well-known/openid-configuration': () =>
      Response.json({
        issuer: ISSUER,
        authorization_endpoint: `${ISSUER}/authorize`,
        token_endpoint: `${ISSUER}/token`,
        jwks_uri: `${ISSUER}/keys`,
        userinfo_endpoint: `${ISSUER}/userinfo`,
      }),
    '/token': () =>
      Response.json({ access_token: 'a', token_type: 'bearer', id_token: idToken, expires_in: 60 }),
    '/keys': () => Response.json({ keys: [jwk] }),
    '/userinfo': () => Response.json({ sub: 'ada', name: 'Ada' }),
    ...(endpoint && answer && { [endpoint]: answer }),
  };
  const fetch = async (url: string) => answers[new URL(url).pathname]?.();
  const oidc = createOidc({ httpFor: () => ({ fetch }) } as unknown as ProviderOutbound);
  return oidc.finish(CONFIG, PENDING, new URLSearchParams(query)).then(
    () => 'signed in',
    (error: unknown) => (error instanceof SignInRefused ? 'refused' : 'unavailable'),
  );
}

const OUTAGES: [string, Answer][] = [
  [
    'refuses connections',
    () => Promise.reject(new OutboundError('connection_failed', 'refused', true)),
  ],
  ['does not answer', () => Promise.reject(new DOMException('late', 'TimeoutError'))],
  ['answers 500', () => Response.json({ error: 'server_error' }, { status: 500 })],
  ['answers 503 with a page', () => new Response('<html>', { status: 503 })],
  ['answers 429', () => new Response('', { status: 429 })],
  ['answers 404 with a page', () => new Response('<html>', { status: 404 })],
  [
    'answers 200 with a page',
    () => new Response('<html>', { headers: { 'content-type': 'text/html' } }),
  ],
];

test('a login with a provider that is there succeeds', async () => {
  expect(await finish()).toBe('signed in');
});

test.each(
  OUTAGES.flatMap(([what, answer]) => ENDPOINTS.map((each) => [each, what, answer] as const)),
)('an outage is no refused sign-in: %s %s', async (endpoint, _what, answer) => {
  expect(await finish(endpoint, answer)).toBe('unavailable');
});

test.each(['server_error', 'temporarily_unavailable'])(
  'a provider that sends the browser back with %s is not available',
  async (error) => {
    expect(await finish(undefined, undefined, `error=${error}&state=the-state`)).toBe(
      'unavailable',
    );
  },
);

test('what the provider refuses is refused', async () => {
  const invalid = () => Response.json({ error: 'invalid_grant' }, { status: 400 });
  expect(await finish('/token', invalid)).toBe('refused');
  expect(await finish(undefined, undefined, 'error=access_denied&state=the-state')).toBe('refused');
  const other = () => Response.json({ sub: 'another' });
  expect(await finish('/userinfo', other)).toBe('refused');
});
