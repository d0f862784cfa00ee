import type {
  Configuration,
  TokenEndpointResponse,
  TokenEndpointResponseHelpers,
} from 'openid-client';
import { LRUCache } from 'lru-cache';
import { Type, type Static } from 'typebox';
import { assertDefined } from '../../../../domain/shared/assert.ts';
import {
  claimAt,
  parseExternalId,
  firstNonEmptyText,
  parseGroups,
  SignInRefused,
  type Profile,
  type TestStep,
} from '../../../../domain/auth/providers.ts';
import { counted } from '../../../../domain/shared/counted.ts';
import type { ProviderOutbound } from '../../../../platform/providerOutbound.ts';
import {
  compareClocks,
  createStepRunner,
  runConnectionSteps,
  type ProviderKindDefinition,
} from './kind.ts';

const ClaimName = (defaultValue: string, description: string) =>
  Type.String({ minLength: 1, maxLength: 255, default: defaultValue, description });

const OidcConfig = Type.Object(
  {
    issuer: Type.String({
      pattern: '^https?://[^?#@\\\\]+$',
      'x-rule': 'must be an http or https URL without query and credentials',
      maxLength: 1_024,
      description: 'Issuer URL, as in the discovery document.',
    }),
    clientId: Type.String({ minLength: 1, maxLength: 255 }),
    clientSecret: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1_024,
        description: 'Secret. Absent for a public client.',
      }),
    ),
    scopes: Type.Array(
      Type.String({
        pattern: '^[\\x21\\x23-\\x5b\\x5d-\\x7e]{1,100}$',
        'x-rule': 'must be a scope of OAuth: up to 100 visible ASCII characters',
      }),
      { default: ['openid', 'profile', 'email'], maxItems: 20 },
    ),
    usernameClaim: ClaimName('preferred_username', 'Shown as the user name.'),
    displayNameClaim: ClaimName('name', 'Shown as the name.'),
    emailClaim: ClaimName('email', 'E-mail address.'),
    groupsClaim: ClaimName('groups', 'Claim with the list of groups; dots separate nested keys.'),
    userInfo: Type.Boolean({
      default: true,
      description: 'Also reads claims from the UserInfo endpoint, if there is one.',
    }),
    allowPrivateNetwork: Type.Boolean({
      default: false,
      description: 'Allows private and loopback addresses.',
    }),
    ownCallback: Type.Optional(
      Type.Boolean({
        description:
          'The redirect URI is /api/auth/oidc/callback/<provider id>. Only one provider may use the path without an id.',
      }),
    ),
    allowHttp: Type.Boolean({
      default: false,
      description: 'Allows http:, for trials on one machine only.',
    }),
  },
  { additionalProperties: false, title: 'OidcConfig' },
);
export type OidcConfig = Static<typeof OidcConfig>;

export const oidcKind: ProviderKindDefinition = {
  kind: 'oidc',
  config: OidcConfig,
  secrets: ['clientSecret'],
  destinations: ['issuer', 'allowPrivateNetwork', 'allowHttp'],
  identity: ['issuer'],
  validate: ({ issuer, allowHttp }) =>
    String(issuer).startsWith('http:') && allowHttp !== true
      ? [
          {
            pointer: '/issuer',
            code: 'https',
            message: 'must be https, unless allowHttp is set',
          },
        ]
      : [],
};

/** What the callback is checked against; encrypted in the pending login. */
export type OidcPending = {
  state: string;
  nonce: string;
  codeVerifier: string;
  redirectUri: string;
};

/** Milliseconds that a discovery document is cached. */
const DISCOVERY_MS = 600_000;
const TIMEOUT_SECONDS = 10;
const CLOCK_TOLERANCE_SECONDS = 30;

/** Loaded on first use, since most processes sign nobody in. */
const loadLibrary = () => import('openid-client');

/** OpenID Connect: authorization code flow with PKCE (RFC 7636), state and nonce. */
export function createOidc(outbound: ProviderOutbound) {
  // Concurrent logins share a request to a provider.
  const discoveryCache = new LRUCache<string, Configuration, OidcConfig>({
    max: 100,
    ttl: DISCOVERY_MS,
    fetchMethod: (_key, _stale, { context }) => discover(context),
  });
  async function discover(config: OidcConfig): Promise<Configuration> {
    const client = await loadLibrary();
    if (!config.allowHttp && !config.issuer.startsWith('https:'))
      throw new Error('The issuer must be https.');
    const http = outbound.httpFor(config);
    const configuration = await client.discovery(
      new URL(config.issuer),
      config.clientId,
      { [client.clockTolerance]: CLOCK_TOLERANCE_SECONDS },
      config.clientSecret === undefined
        ? client.None()
        : client.ClientSecretPost(config.clientSecret),
      {
        timeout: TIMEOUT_SECONDS,
        [client.customFetch]: (url, options) => http.fetch(url, { ...options, body: options.body }),
        // Verifies the signature of the ID token although it comes from the token endpoint over
        // TLS.
        execute: [
          client.enableNonRepudiationChecks,
          // oxlint-disable-next-line typescript/no-deprecated -- marked deprecated as a warning; set by an administrator
          ...(config.allowHttp ? [client.allowInsecureRequests] : []),
        ],
      },
    );
    const { issuer } = configuration.serverMetadata();
    // The library accepts such a document of Microsoft, and then a token of any tenant.
    if (issuer.includes('{'))
      throw new Error(`The issuer ${issuer} is that of all tenants: use the issuer of one tenant.`);
    return configuration;
  }

  const configurationOf = async (config: OidcConfig): Promise<Configuration> =>
    assertDefined(
      await discoveryCache.fetch(JSON.stringify(config), { context: config }),
      'configuration of the provider',
    );

  async function claimsOf(
    config: OidcConfig,
    configuration: Configuration,
    tokens: TokenEndpointResponse & TokenEndpointResponseHelpers,
  ) {
    const client = await loadLibrary();
    const claims = tokens.claims();
    if (!claims) throw new SignInRefused('there is no ID token');
    const readsUserInfo =
      config.userInfo && configuration.serverMetadata().userinfo_endpoint !== undefined;
    const userInfoClaims = readsUserInfo
      ? await client.fetchUserInfo(configuration, tokens.access_token, claims.sub)
      : {};
    return { ...userInfoClaims, ...claims } as Record<string, unknown> & { sub: string };
  }

  return {
    /** True if a login with this configuration starts without a request to the provider. */
    isDiscovered: (config: OidcConfig): boolean => discoveryCache.has(JSON.stringify(config)),

    /**
     * URL to redirect the browser to, and what the callback is checked against. Errors: those of
     * discovery.
     */
    async start(
      config: OidcConfig,
      { state, redirectUri }: { state: string; redirectUri: string },
    ): Promise<{ url: string; pending: OidcPending }> {
      const client = await loadLibrary();
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
     * Redeems the authorization code and verifies the tokens. Errors: `SignInRefused` if the
     * provider or a check refuses; others if the provider is not available.
     */
    async finish(
      config: OidcConfig,
      pending: OidcPending,
      query: URLSearchParams,
    ): Promise<Profile> {
      const client = await loadLibrary();
      const configuration = await configurationOf(config);
      const callbackUrl = new URL(`${pending.redirectUri}?${query.toString()}`);
      const claims = await client
        .authorizationCodeGrant(configuration, callbackUrl, {
          expectedState: pending.state,
          expectedNonce: pending.nonce,
          pkceCodeVerifier: pending.codeVerifier,
          idTokenExpected: true,
        })
        .then((tokens) => claimsOf(config, configuration, tokens))
        .catch((error: unknown) => {
          throw toSignInError(error);
        });
      const username =
        firstNonEmptyText(
          claimAt(claims, config.usernameClaim),
          claimAt(claims, config.emailClaim),
        ) ?? claims.sub.slice(0, 255);
      return {
        externalId: parseExternalId(claims.sub),
        username,
        displayName: firstNonEmptyText(claimAt(claims, config.displayNameClaim)) ?? username,
        email: firstNonEmptyText(claimAt(claims, config.emailClaim)) ?? null,
        groups: parseGroups(claimAt(claims, config.groupsClaim)),
      };
    },

    /** Groups from sample claims. */
    groupsFromClaims: (config: OidcConfig, claims: Readonly<Record<string, unknown>>): string[] =>
      parseGroups(claimAt(claims, config.groupsClaim)),

    /** Tests the connection, the discovery document, the keys and the clock. */
    async test(config: OidcConfig): Promise<{ steps: TestStep[] }> {
      const { steps, step } = createStepRunner();
      await runConnectionSteps(
        step,
        config.issuer,
        outbound.guardFor(config),
        TIMEOUT_SECONDS * 1_000,
      );
      const date = await step('answer', async () => {
        const url = `${config.issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
        const response = await outbound.httpFor(config).request({
          url,
          method: 'GET',
          headers: { accept: 'application/json' },
          timeoutMs: TIMEOUT_SECONDS * 1_000,
        });
        if (response.status !== 200) throw new Error(`${url} answers ${response.status}.`);
        return { message: `${url} answers.`, value: response.headers.date };
      });
      const configuration = await step('discovery', async () => {
        const value = await discover(config);
        return { message: `Issuer ${value.serverMetadata().issuer}.`, value };
      });
      await step('keys', async () => {
        const url = configuration?.serverMetadata().jwks_uri;
        if (url === undefined) throw new Error('The discovery document names no keys.');
        const response = await outbound.httpFor(config).request({
          url,
          method: 'GET',
          headers: { accept: 'application/json' },
          timeoutMs: TIMEOUT_SECONDS * 1_000,
        });
        return { message: `${counted(countKeys(response.body), 'key')}.` };
      });
      await step('clock', () => Promise.resolve(compareClocks(date, CLOCK_TOLERANCE_SECONDS)));
      return { steps };
    },
  };
}

/** The number of keys in a document. Errors do not quote it: it may be a page that the caller must not read. */
function countKeys(body: string): number {
  let document: unknown;
  try {
    document = JSON.parse(body);
  } catch {
    throw new Error('The document is not JSON.');
  }
  const { keys } = (document ?? {}) as { keys?: unknown };
  if (!Array.isArray(keys) || keys.length === 0) throw new Error('The document contains no keys.');
  return keys.length;
}

type ErrorCause = {
  name?: string;
  code?: string;
  message?: string;
  claim?: string;
  error?: string;
  /** The HTTP status of the answer of the provider. */
  status?: number;
  cause?: ErrorCause;
};

/**
 * Messages of an error and its causes. Other properties are left out, since they may contain
 * tokens, and messages that quote a response that is not JSON.
 */
function errorTexts({ name, message, claim, error, cause }: ErrorCause): string[] {
  const texts = [name === 'SyntaxError' ? 'not JSON' : message, claim, error].filter(
    (text): text is string => typeof text === 'string',
  );
  return cause ? [...texts, ...errorTexts(cause)] : texts;
}

/** Errors of OAuth (RFC 6749, 4.1.2.1) with which a provider says that it is not available. */
const OUTAGE_ERRORS: readonly unknown[] = ['server_error', 'temporarily_unavailable'];

/**
 * True if the provider could not be reached, or has decided nothing: it has answered with an error of a server, or with
 * a page in place of JSON, as by a proxy before it.
 */
function isOutage({ code, name, error, status, cause }: ErrorCause): boolean {
  if (code === 'OAUTH_TIMEOUT' || [name, cause?.name].includes('OutboundError')) return true;
  if (OUTAGE_ERRORS.includes(error)) return true;
  const answered = status ?? cause?.status;
  if (answered !== undefined && (answered >= 500 || answered === 429)) return true;
  return code === 'OAUTH_RESPONSE_IS_NOT_CONFORM' || code === 'OAUTH_RESPONSE_IS_NOT_JSON';
}

/** Converts an error of the flow to `SignInRefused`, unless it is an outage of the provider. */
function toSignInError(error: unknown): Error {
  if (error instanceof SignInRefused) return error;
  const failure = error as ErrorCause;
  const reason = [...new Set(errorTexts(failure))].join(': ').slice(0, 300);
  return isOutage(failure) ? new Error(reason) : new SignInRefused(reason);
}
