import { createServer } from 'node:http';
import { exportJWK, generateKeyPair, importJWK, SignJWT, decodeJwt, type JWK } from 'jose';
import Provider from 'oidc-provider';
import { freePort } from '../../dev/freePort.ts';

/** What the provider says of whoever signs in next. */
export type Claims = {
  sub: string;
  preferred_username?: string;
  name?: string;
  email?: string;
  groups?: unknown;
};

/** Changes the answer of the token endpoint: an attacker in the provider's place. */
type Tamper = (
  tokens: Record<string, unknown>,
) => Promise<Record<string, unknown>> | Record<string, unknown>;

/** A real OpenID provider on loopback that signs in whoever a test says, without asking. */
export async function startOidcPeer(redirectUris: readonly string[]) {
  const port = await freePort(0);
  const issuer = `http://127.0.0.1:${port}`;
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const jwk: JWK = { ...(await exportJWK(privateKey)), use: 'sig', alg: 'RS256', kid: 'peer' };
  const peer = { claims: { sub: 'somebody' } as Claims, tamper: undefined as Tamper | undefined };

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
    async loadExistingGrant(ctx: any) {
      const grant = new ctx.oidc.provider.Grant({
        clientId: ctx.oidc.client.clientId,
        accountId: ctx.oidc.session.accountId,
      });
      grant.addOIDCScope('openid profile email groups');
      await grant.save();
      return grant;
    },
  });
  provider.use(async (ctx: any, next: () => Promise<void>) => {
    if (ctx.path.startsWith('/interaction/')) {
      await provider.interactionFinished(ctx.req, ctx.res, {
        login: { accountId: peer.claims.sub },
      });
      ctx.respond = false;
      return;
    }
    await next();
    if (ctx.path === '/token' && ctx.status === 200 && peer.tamper)
      ctx.body = await peer.tamper(ctx.body);
  });
  const server = createServer(provider.callback() as never);
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));

  return Object.assign(peer, {
    issuer,
    /** An ID token with other claims or another header, signed with the provider's own key unless one is given. */
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
