import type { Knex } from '../../db/core/knex.ts';
import { Provider } from '../../db/models/Provider.ts';
import {
  findPendingLogin,
  findPendingProvider,
  insertPendingLogin,
  savePendingProfile,
  consumePendingLogin,
  type PendingLoginRow,
} from '../../db/auth/providers.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { AppError, isTooManyRequests, LoginFailure, notFound } from '../../domain/shared/errors.ts';
import { SignInRefused, type Profile } from '../../domain/auth/providers.ts';
import type { Ids } from '../../platform/ids.ts';
import type { Log } from '../../platform/log.ts';
import type { Vault } from '../../platform/vault.ts';
import type { LoginSession } from './loginSession.ts';
import type { createOidc, OidcConfig, OidcPending } from './providers/kinds/oidc.ts';
import type { createSaml } from './providers/kinds/saml.ts';
import type { SamlPending } from './providers/kinds/samlClient.ts';
import type { SamlConfig } from './providers/kinds/samlConfig.ts';
import type { Providers } from './providers/providers.ts';
import type { ProviderWaits } from './providers/waits.ts';
import type { RequestSource, SessionTokens } from './sessions.ts';
import type { LoginThrottle } from './loginThrottle.ts';
import { hashToken } from './hashToken.ts';
import { newLoginSecret } from './loginSecrets.ts';

export type Sso = ReturnType<typeof createSso>;

/**
 * `returnTo` and `failureTo` are paths of this origin, for a login that succeeds and one that fails.
 * `origin` comes from the configuration, never from a header.
 */
type SsoStart = { providerId?: string; returnTo: string; failureTo: string; origin: string };

/** Where to send the browser, and the secret that binds the login to it (a cookie). */
export type SsoRedirect = { redirectUrl: string; browserToken: string };

/**
 * The verified profile of a SAML response, with the hash (base64) of the ticket that its browser
 * received.
 */
type ReceivedProfile = { profile: Profile; ticketHash: string };

/**
 * 0.2.0, which may run at the same time, stores the profile alone: its browser got no ticket.
 * until 0.4: remove it; `ticketHash` is never null.
 */
const readReceived = (stored: ReceivedProfile | Profile) =>
  'ticketHash' in stored ? stored : { profile: stored, ticketHash: null };

/** Result of a completed login; `returnTo` is the path to continue at. */
export type SsoResult = { tokens: SessionTokens; returnTo: string };

export const OIDC_CALLBACK = '/api/auth/oidc/callback';
/**
 * Callback path of an OIDC provider. At most one provider uses the path without an id, which
 * prevents mix-up attacks (RFC 9700, 4.4.2.2).
 */
const callbackPath = (providerId: string, config: { ownCallback?: unknown }): string =>
  config.ownCallback === true ? `${OIDC_CALLBACK}/${providerId}` : OIDC_CALLBACK;

export const SAML_CALLBACK = '/api/auth/saml/callback';
const samlMetadataPath = (providerId: string) => `/api/auth/saml/metadata/${providerId}`;

/** Seconds until a started login expires. */
export const LOGIN_LIFETIME_SECONDS = 600;

type Deps = {
  db: Knex;
  ids: Ids;
  log: Log;
  vault: Vault;
  loginThrottle: LoginThrottle;
  loginSession: LoginSession;
  providers: Providers;
  providerWaits: ProviderWaits;
  oidc: ReturnType<typeof createOidc>;
  saml: ReturnType<typeof createSaml>;
};

/**
 * Single sign-on with OpenID Connect and SAML. A login can be completed only by the browser that
 * started it.
 */
export function createSso({
  db,
  ids,
  log,
  vault,
  loginThrottle,
  loginSession,
  providers,
  providerWaits,
  oidc,
  saml,
}: Deps) {
  const sealContext = (loginId: string, field: 'sealed_request' | 'sealed_profile') =>
    `login:${loginId}:${field}`;

  function throwUnavailable(provider: Provider, error: unknown): never {
    // A missing master key is a fault of the installation: it is logged, not shown to the user.
    if (error instanceof AppError && error.code !== 'master_key_missing') throw error;
    log.warn({ err: error, providerId: provider.id }, 'identity provider is not available');
    throw new AppError('provider_unavailable', 'The identity provider is not available.');
  }

  /**
   * Stores what the response is checked against. The provider receives `state`; the browser keeps
   * the returned token in a cookie.
   */
  async function savePendingLogin(
    provider: Provider,
    { returnTo, failureTo }: Pick<SsoStart, 'returnTo' | 'failureTo'>,
    state: ReturnType<typeof newLoginSecret>,
    pending: object,
  ): Promise<string> {
    const id = ids.next('lgn');
    const browser = newLoginSecret('browser');
    await insertPendingLogin(db, {
      id,
      provider_id: provider.id,
      state_hash: state.hash,
      browser_hash: browser.hash,
      return_to: returnTo,
      failure_to: failureTo,
      sealed_profile: null,
      sealed_request: vault.seal(JSON.stringify(pending), sealContext(id, 'sealed_request')),
      expires_at: new Date(Date.now() + LOGIN_LIFETIME_SECONDS * 1_000),
    });
    return browser.token;
  }

  const openSealed = (
    login: PendingLoginRow,
    field: 'sealed_request' | 'sealed_profile',
  ): unknown =>
    JSON.parse(
      vault.open(assertDefined(login[field], `login.${field}`), sealContext(login.id, field)),
    );

  async function requireEnabledProvider(
    login: PendingLoginRow,
    source: RequestSource,
  ): Promise<Provider> {
    const provider = await Provider.query(db).findById(login.provider_id).where({ enabled: true });
    return (
      provider ??
      loginSession.reject(source, {
        providerId: login.provider_id,
        reason: 'the provider is disabled',
      })
    );
  }

  const rejectUnknownLogin = (source: RequestSource) =>
    loginSession.reject(
      source,
      { reason: 'this browser has no such login in progress' },
      { message: 'This browser has no such login in progress. Start again.' },
    );

  /**
   * The pending login that this browser started, marked as used; from another browser, it ends. Error:
   * `login_failed`.
   */
  async function consumeLogin(
    state: string,
    browserToken: string | undefined,
    source: RequestSource,
  ): Promise<PendingLoginRow> {
    const login = await consumePendingLogin(db, {
      stateHash: hashToken(state),
      browserHash: hashToken(browserToken ?? ''),
      now: new Date(),
    });
    return login ?? rejectUnknownLogin(source);
  }

  /**
   * Starts a login. `buildRedirect` returns the provider's URL and what the response is checked
   * against.
   */
  async function startLogin(
    kind: 'oidc' | 'saml',
    { providerId, ...paths }: Omit<SsoStart, 'origin'>,
    source: RequestSource,
    buildRedirect: (provider: Provider, state: string) => Promise<{ url: string; pending: object }>,
  ): Promise<SsoRedirect> {
    await loginThrottle.countStep(source.address);
    const provider = await providers.findEnabled(kind, providerId);
    try {
      const state = newLoginSecret('state');
      const { url, pending } = await buildRedirect(provider, state.token);
      return {
        redirectUrl: url,
        browserToken: await savePendingLogin(provider, paths, state, pending),
      };
    } catch (error) {
      return throwUnavailable(provider, error);
    }
  }

  /** An error of a login, with the path to which its browser is led back. */
  const ledBack = ({ failure_to: path }: Pick<PendingLoginRow, 'failure_to'>, error: unknown) =>
    path === null ? error : new LoginFailure(path, error);

  /** Finishes a login that is known. Error: `LoginFailure`, so that its browser is led back. */
  async function finishing<T>(login: PendingLoginRow, finish: () => Promise<T>): Promise<T> {
    try {
      return await finish();
    } catch (error) {
      throw ledBack(login, error);
    }
  }

  /** Profile from a verified response. Errors: `login_failed`, `provider_unavailable`. */
  async function verifiedProfile(
    provider: Provider,
    source: RequestSource,
    fetchProfile: () => Promise<Profile>,
  ): Promise<Profile> {
    try {
      return await fetchProfile();
    } catch (error) {
      if (error instanceof SignInRefused)
        return loginSession.reject(source, { providerId: provider.id, reason: error.message });
      return throwUnavailable(provider, error);
    }
  }

  return {
    /** Errors: `invalid_request` (provider), `too_many_requests`, `provider_unavailable`. */
    startOidc: ({ origin, ...start }: SsoStart, source: RequestSource): Promise<SsoRedirect> =>
      startLogin('oidc', start, source, (provider, state) => {
        const config = providers.openConfig(provider) as OidcConfig;
        const redirectUri = origin + callbackPath(provider.id, config);
        const build = () => oidc.start(config, { state, redirectUri });
        return oidc.isDiscovered(config)
          ? build()
          : providerWaits.run(provider.id, source.address, build);
      }),

    /** Errors: `login_failed`, `provider_unavailable`, `too_many_requests`. */
    async finishOidc(
      { query, path }: { query: URLSearchParams; path: string },
      browserToken: string | undefined,
      source: RequestSource,
    ): Promise<SsoResult> {
      await loginThrottle.countStep(source.address);
      const state = query.get('state') ?? '';
      const pending = await findPendingProvider(db, hashToken(state), new Date());
      if (pending === undefined) return rejectUnknownLogin(source);
      const finish = async () => {
        const login = await consumeLogin(state, browserToken, source);
        return finishing(login, async () => {
          const provider = await requireEnabledProvider(login, source);
          // A code at another provider's callback must not be redeemed: that provider may be malicious
          // and would receive a code of this one.
          if (path !== callbackPath(provider.id, provider.config)) {
            return loginSession.reject(source, {
              providerId: provider.id,
              reason: `the response came to ${path}`,
            });
          }
          const profile = await verifiedProfile(provider, source, () =>
            oidc.finish(
              providers.openConfig(provider) as OidcConfig,
              openSealed(login, 'sealed_request') as OidcPending,
              query,
            ),
          );
          return {
            tokens: await loginSession.startForProfile(provider, profile, source),
            returnTo: login.return_to,
          };
        });
      };
      return providerWaits
        .run(pending.provider_id, source.address, finish)
        .catch((error: unknown) => {
          // The login was not used: the callback can be repeated, and a browser begins again.
          throw isTooManyRequests(error) ? ledBack(pending, error) : error;
        });
    },

    /** Errors: as for `startOidc`. */
    startSaml: ({ origin, ...start }: SsoStart, source: RequestSource): Promise<SsoRedirect> =>
      startLogin('saml', start, source, (provider, state) => {
        const config = providers.openConfig(provider) as SamlConfig;
        const audience = saml.audienceOf(config, origin + samlMetadataPath(provider.id));
        return saml.start(config, {
          relayState: state,
          callbackUrl: origin + SAML_CALLBACK,
          audience,
          now: new Date(),
        });
      }),

    /**
     * Verifies a SAML response. The provider's page posts it without our SameSite cookies, so the
     * profile is stored until the browser that started the login collects it. The result is a ticket
     * for the browser that posted the response: both must be the same one. Error: `login_failed`.
     */
    async receiveSaml(
      { samlResponse, relayState }: { samlResponse: string; relayState: string },
      source: RequestSource,
    ): Promise<string> {
      await loginThrottle.countStep(source.address);
      const login =
        (await findPendingLogin(db, hashToken(relayState), new Date())) ??
        (await rejectUnknownLogin(source));
      return finishing(login, async () => {
        const provider = await requireEnabledProvider(login, source);
        const profile = await verifiedProfile(provider, source, () =>
          saml.finish(
            providers.openConfig(provider) as SamlConfig,
            openSealed(login, 'sealed_request') as SamlPending,
            samlResponse,
          ),
        );
        const ticket = newLoginSecret('ticket');
        const received: ReceivedProfile = { profile, ticketHash: ticket.hash.toString('base64') };
        const isSaved = await savePendingProfile(
          db,
          login.id,
          vault.seal(JSON.stringify(received), sealContext(login.id, 'sealed_profile')),
        );
        return isSaved ? ticket.token : rejectUnknownLogin(source);
      });
    },

    /**
     * Completes a login whose response was received. The cookie alone is not enough: an attacker may
     * have started the login, and a victim signed in with it, whose browser has the ticket. Error:
     * `login_failed`, after which nobody can complete the login.
     */
    async finishSaml(
      { state, ticket = '' }: { state: string; ticket?: string },
      browserToken: string | undefined,
      source: RequestSource,
    ): Promise<SsoResult> {
      await loginThrottle.countStep(source.address);
      const login = await consumeLogin(state, browserToken, source);
      return finishing(login, async () => {
        if (login.sealed_profile === null) return rejectUnknownLogin(source);
        const { profile, ticketHash } = readReceived(
          openSealed(login, 'sealed_profile') as ReceivedProfile | Profile,
        );
        if (ticketHash !== null && hashToken(ticket).toString('base64') !== ticketHash)
          return rejectUnknownLogin(source);
        const provider = await requireEnabledProvider(login, source);
        return {
          tokens: await loginSession.startForProfile(provider, profile, source),
          returnTo: login.return_to,
        };
      });
    },

    /** Service provider metadata (XML) for the identity provider. Error: `not_found`. */
    async samlMetadata(providerId: string, origin: string): Promise<string> {
      const provider = await Provider.query(db)
        .findById(providerId)
        .where({ kind: 'saml', enabled: true });
      if (!provider) throw notFound('provider', providerId);
      const config = providers.openConfig(provider) as SamlConfig;
      return saml.metadata(config, {
        callbackUrl: origin + SAML_CALLBACK,
        audience: saml.audienceOf(config, origin + samlMetadataPath(providerId)),
      });
    },
  };
}
