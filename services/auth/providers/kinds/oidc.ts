import type {
  Configuration,
  TokenEndpointResponse,
  TokenEndpointResponseHelpers,
} from 'openid-client';
import { LRUCache } from 'lru-cache';
import { Type, type Static } from 'typebox';
import {
  claimAt,
  externalIdFrom,
  firstText,
  groupsFrom,
  SignInRefused,
  type Profile,
  type TestStep,
} from '../../../../domain/auth/providers.ts';
import type { ProviderOutbound } from '../../../../platform/providerOutbound.ts';
import { compareClocks, createSteps, reachSteps, type Kind } from './kind.ts';

const ClaimName = (byDefault: string, description: string) =>
  Type.String({ minLength: 1, maxLength: 255, default: byDefault, description });

const OidcConfig = Type.Object(
  {
    issuer: Type.String({
      pattern: '^https?://[^?#@\\\\]+$',
      maxLength: 1_024,
      description: 'As in its discovery document.',
    }),
    clientId: Type.String({ minLength: 1, maxLength: 255 }),
    clientSecret: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1_024,
        description: 'Secret. Without it the client is a public one.',
      }),
    ),
    scopes: Type.Array(Type.String({ pattern: '^[\\x21\\x23-\\x5b\\x5d-\\x7e]{1,100}$' }), {
      default: ['openid', 'profile', 'email'],
      maxItems: 20,
    }),
    usernameClaim: ClaimName('preferred_username', 'Shown as the user name.'),
    displayNameClaim: ClaimName('name', 'Shown as the name.'),
    emailClaim: ClaimName('email', 'E-mail address.'),
    groupsClaim: ClaimName('groups', 'A list of groups; a path with dots reaches into objects.'),
    userInfo: Type.Boolean({
      default: true,
      description: 'Also reads the UserInfo endpoint, where there is one.',
    }),
    allowPrivateNetwork: Type.Boolean({
      default: false,
      description: 'The provider is at a private or loopback address.',
    }),
    ownCallback: Type.Optional(
      Type.Boolean({
        description:
          'The redirect URI ends in /api/auth/oidc/callback/<id of the provider>. One provider may share the path without an id; the others get their own.',
      }),
    ),
    allowHttp: Type.Boolean({
      default: false,
      description: 'Accepts http: for trials on one machine only.',
    }),
  },
  { additionalProperties: false, title: 'OidcConfig' },
);
export type OidcConfig = Static<typeof OidcConfig>;

export const oidcKind: Kind = {
  kind: 'oidc',
  config: OidcConfig,
  secrets: ['clientSecret'],
  destinations: ['issuer', 'allowPrivateNetwork', 'allowHttp'],
  faults: ({ issuer, allowHttp }) =>
    String(issuer).startsWith('http:') && allowHttp !== true
      ? [
          {
            pointer: '/issuer',
            code: 'https',
            message: 'must be https, unless allowHttp is set for a trial on one machine',
          },
        ]
      : [],
};

/** What must come back with the browser; sealed until then. */
export type OidcPending = {
  state: string;
  nonce: string;
  codeVerifier: string;
  redirectUri: string;
};

/** How long a discovery document is believed. */
const DISCOVERY_MS = 600_000;
const TIMEOUT_SECONDS = 10;
const CLOCK_TOLERANCE_SECONDS = 30;

/** Loaded when it is needed: most processes never sign anybody in. */
const library = () => import('openid-client');

/** Signs people in with OpenID Connect: authorization code flow with PKCE (RFC 7636), state and nonce. */
export function createOidc(outbound: ProviderOutbound) {
  const discovered = new LRUCache<string, Configuration>({ max: 100, ttl: DISCOVERY_MS });
  async function discover(config: OidcConfig): Promise<Configuration> {
    const client = await library();
    if (!config.allowHttp && !config.issuer.startsWith('https:'))
      throw new Error('The issuer must be https.');
    const http = outbound.httpFor(config);
    return client.discovery(
      new URL(config.issuer),
      config.clientId,
      { [client.clockTolerance]: CLOCK_TOLERANCE_SECONDS },
      config.clientSecret === undefined
        ? client.None()
        : client.ClientSecretPost(config.clientSecret),
      {
        timeout: TIMEOUT_SECONDS,
        [client.customFetch]: (url, options) => http.fetch(url, { ...options, body: options.body }),
        // The signature of the ID token is checked although it comes straight from the provider.
        // eslint-disable-next-line @typescript-eslint/no-deprecated -- marked so to stand out; an administrator asked for it
        execute: [
          client.enableNonRepudiationChecks,
          ...(config.allowHttp ? [client.allowInsecureRequests] : []),
        ],
      },
    );
  }

  async function configurationOf(config: OidcConfig): Promise<Configuration> {
    const key = JSON.stringify(config);
    const known = discovered.get(key);
    if (known) return known;
    const found = await discover(config);
    discovered.set(key, found);
    return found;
  }

  async function claimsOf(
    config: OidcConfig,
    configuration: Configuration,
    tokens: TokenEndpointResponse & TokenEndpointResponseHelpers,
  ) {
    const client = await library();
    const claims = tokens.claims();
    if (!claims) throw new SignInRefused('there is no ID token');
    const readsUserInfo =
      config.userInfo && configuration.serverMetadata().userinfo_endpoint !== undefined;
    const more = readsUserInfo
      ? await client.fetchUserInfo(configuration, tokens.access_token, claims.sub)
      : {};
    return { ...more, ...claims } as Record<string, unknown> & { sub: string };
  }

  return {
    /** Where the browser goes, and what must come back. Errors: those of discovery. */
    async start(
      config: OidcConfig,
      { state, redirectUri }: { state: string; redirectUri: string },
    ): Promise<{ url: string; pending: OidcPending }> {
      const client = await library();
      const configuration = await configurationOf(config);
      const pending = {
        state,
        nonce: client.randomNonce(),
        codeVerifier: client.randomPKCECodeVerifier(),
        redirectUri,
      };
      const url = client.buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: [...new Set(['openid', ...config.scopes])].join(' '),
        state,
        nonce: pending.nonce,
        code_challenge: await client.calculatePKCECodeChallenge(pending.codeVerifier),
        code_challenge_method: 'S256',
      });
      return { url: url.href, pending };
    },

    /**
     * Redeems the code that came back and checks everything about it. Errors: `SignInRefused` when the provider or
     * one of the checks refuses; others when the provider cannot be asked.
     */
    async finish(
      config: OidcConfig,
      pending: OidcPending,
      query: URLSearchParams,
    ): Promise<Profile> {
      const client = await library();
      const configuration = await configurationOf(config);
      const cameBack = new URL(`${pending.redirectUri}?${query.toString()}`);
      const claims = await client
        .authorizationCodeGrant(configuration, cameBack, {
          expectedState: pending.state,
          expectedNonce: pending.nonce,
          pkceCodeVerifier: pending.codeVerifier,
          idTokenExpected: true,
        })
        .then((tokens) => claimsOf(config, configuration, tokens))
        .catch((error: unknown) => {
          throw refused(error);
        });
      const username =
        firstText(claimAt(claims, config.usernameClaim), claimAt(claims, config.emailClaim)) ??
        claims.sub.slice(0, 255);
      return {
        externalId: externalIdFrom(claims.sub),
        username,
        displayName: firstText(claimAt(claims, config.displayNameClaim)) ?? username,
        email: firstText(claimAt(claims, config.emailClaim)) ?? null,
        groups: groupsFrom(claimAt(claims, config.groupsClaim)),
      };
    },

    /** The groups that sample claims would give. */
    groupsIn: (config: OidcConfig, claims: Readonly<Record<string, unknown>>): string[] =>
      groupsFrom(claimAt(claims, config.groupsClaim)),

    /** Reads the discovery document and the keys, step by step. */
    async test(config: OidcConfig): Promise<{ steps: TestStep[] }> {
      const { steps, step } = createSteps();
      await reachSteps(step, config.issuer, outbound.guardFor(config), TIMEOUT_SECONDS * 1_000);
      const date = await step('answer', async () => {
        const url = `${config.issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
        const answer = await outbound
          .httpFor(config)
          .request({
            url,
            method: 'GET',
            headers: { accept: 'application/json' },
            timeoutMs: TIMEOUT_SECONDS * 1_000,
          });
        if (answer.status !== 200) throw new Error(`${url} answers ${answer.status}.`);
        return { message: `${url} answers.`, value: answer.headers.date };
      });
      const configuration = await step('discovery', async () => {
        const value = await discover(config);
        return { message: `Issuer ${value.serverMetadata().issuer}.`, value };
      });
      await step('keys', async () => {
        const url = configuration?.serverMetadata().jwks_uri;
        if (url === undefined) throw new Error('The discovery document names no keys.');
        const answer = await outbound
          .httpFor(config)
          .request({
            url,
            method: 'GET',
            headers: { accept: 'application/json' },
            timeoutMs: TIMEOUT_SECONDS * 1_000,
          });
        const { keys } = JSON.parse(answer.body) as { keys?: unknown[] };
        if (!Array.isArray(keys) || keys.length === 0) throw new Error('There are no keys.');
        return { message: `${keys.length} keys.` };
      });
      await step('clock', () => Promise.resolve(compareClocks(date, CLOCK_TOLERANCE_SECONDS)));
      return { steps };
    },
  };
}

type Cause = {
  name?: string;
  code?: string;
  message?: string;
  claim?: string;
  error?: string;
  cause?: Cause;
};

/** The texts of an error and of what caused it; nothing else of them, since causes hold tokens. */
function inWords({ message, claim, error, cause }: Cause): string[] {
  const own = [message, claim, error].filter((text): text is string => typeof text === 'string');
  return cause ? [...own, ...inWords(cause)] : own;
}

/** What the provider or a check refused, apart from a provider that cannot be reached. */
function refused(error: unknown): unknown {
  if (error instanceof SignInRefused) return error;
  const failure = error as Cause;
  const network =
    failure.code === 'OAUTH_TIMEOUT' ||
    [failure.name, failure.cause?.name].includes('OutboundError');
  return network
    ? error
    : new SignInRefused([...new Set(inWords(failure))].join(': ').slice(0, 300));
}
