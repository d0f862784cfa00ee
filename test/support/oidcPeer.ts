import { createServer } from 'node:http';
import { exportJWK, generateKeyPair, importJWK, SignJWT, decodeJwt, type JWK } from 'jose';
import Provider, { type KoaContextWithOIDC } from 'oidc-provider';
import { assertDefined } from '../../domain/shared/assert.ts';
import { freePort } from '../../dev/freePort.ts';

/** Claims of the person who signs in next. */
export type Claims = {
  sub: string;
  preferred_username?: string;
  name?: string;
  email?: string;
  groups?: unknown;
};

/** Changes the response of the token endpoint, as a malicious provider could. */
type Tamper = (
  tokens: Record<string, unknown>,
) => Promise<Record<string, unknown>> | Record<string, unknown>;

/** A real OpenID provider on loopback that signs in the person whom a test sets, without a form. */
export async function startOidcPeer(redirectUris: readonly string[]) {
  const port = await freePort(0);
  const issuer = `http://127.0.0.1:${port}`;
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const jwk: JWK = { ...(await exportJWK(privateKey)), use: 'sig', alg: 'RS256', kid: 'peer' };
  const peer = { claims: { sub: 'person-1' } as Claims, tamper: undefined as Tamper | undefined };

  const provider = new Provider(issuer, {
    clients: ['holdfast', 'other'].map((id) => ({
      client_id: id,
      client_secret: `${id}-secret-of-the-client`,
      redirect_uris: [...redirectUris],
      token_endpoint_auth_method: 'client_secret_post' as const,
    })),
    jwks: { keys: [jwk] },
    cookies: { keys: ['test'] },
    features: { devInteractions: { enabled: false } },
    claims: {
      openid: ['sub'],
      profile: ['preferred_username', 'name'],
      email: ['email'],
      groups: ['groups'],
    },
    scopes: ['openid', 'profile', 'email', 'groups'],
    ttl: {
      AccessToken: 600,
      AuthorizationCode: 60,
      Grant: 600,
      IdToken: 600,
      Interaction: 600,
      Session: 600,
    },
    pkce: { required: () => true },
    findAccount: (_ctx: unknown, sub: string) => ({
      accountId: sub,
      claims: () => Promise.resolve({ ...peer.claims }),
    }),
    interactions: {
      url: (_ctx: unknown, interaction: { uid: string }) => `/interaction/${interaction.uid}`,
    },
    async loadExistingGrant({ oidc }: KoaContextWithOIDC) {
      const grant = new oidc.provider.Grant({
        clientId: assertDefined(oidc.client, 'client').clientId,
        accountId: assertDefined(oidc.session?.accountId, 'accountId'),
      });
      grant.addOIDCScope('openid profile email groups');
      await grant.save();
      return grant;
    },
  });
  provider.use(async (ctx, next) => {
    if (ctx.path.startsWith('/interaction/')) {
      await provider.interactionFinished(ctx.req, ctx.res, {
        login: { accountId: peer.claims.sub },
      });
      ctx.respond = false;
      return;
    }
    await next();
    if (ctx.path === '/token' && ctx.status === 200 && peer.tamper)
      ctx.body = await peer.tamper(ctx.body as Record<string, unknown>);
  });
  const server = createServer(provider.callback() as never);
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));

  return Object.assign(peer, {
    issuer,
    /** Signs an ID token again, with other claims, header or key. */
    async resign(
      idToken: unknown,
      change: object,
      header: { alg: string; kid?: string } = { alg: 'RS256', kid: 'peer' },
      key?: Awaited<ReturnType<typeof importJWK>>,
    ) {
      const signer = new SignJWT({ ...decodeJwt(String(idToken)), ...change }).setProtectedHeader(
        header,
      );
      return signer.sign(key ?? (await importJWK(jwk, 'RS256')));
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}
