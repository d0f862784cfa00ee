import type { Knex } from '../db/core/knex.ts';
import { Provider } from '../db/models/Provider.ts';
import {
  findWaitingLogin,
  insertLogin,
  keepOutcome,
  takeLogin,
  type LoginRow,
} from '../db/auth/providers.ts';
import { AppError, notFound } from '../domain/shared/errors.ts';
import { SignInRefused, type Profile } from '../domain/auth/providers.ts';
import type { Clock } from '../platform/clock.ts';
import type { Ids } from '../platform/ids.ts';
import type { Log } from '../platform/log.ts';
import type { Vault } from '../platform/vault.ts';
import type { Admission } from './auth/loginSession.ts';
import type { createOidc, OidcConfig, OidcPending } from './auth/providers/kinds/oidc.ts';
import type { createSaml, SamlConfig, SamlPending } from './auth/providers/kinds/saml.ts';
import type { Providers } from './auth/providers/providers.ts';
import type { RequestSource, SessionTokens } from './auth/sessions.ts';
import type { Throttle } from './throttle.ts';
import { newToken, tokenHash } from './auth/tokens.ts';

export type Federation = ReturnType<typeof createFederation>;

/** `origin` is where browsers reach this API, from the configuration and never from a request header. */
type Start = { providerId?: string; returnTo: string; origin: string };

/** Where the browser goes next, and the secret that binds the sign-in to it. */
export type Started = { redirectUrl: string; browserToken: string };

/** A finished sign-in, and the path of the UI to go back to. */
export type Finished = { tokens: SessionTokens; returnTo: string };

export const OIDC_CALLBACK = '/api/auth/oidc/callback';
/** Where a provider sends the browser back to: at most one shares the path that has no id in it (RFC 9700, 4.4.2.2). */
const callbackOf = (providerId: string, config: { ownCallback?: unknown }): string =>
  config.ownCallback === true ? `${OIDC_CALLBACK}/${providerId}` : OIDC_CALLBACK;

export const SAML_CALLBACK = '/api/auth/saml/callback';
const samlMetadata = (providerId: string) => `/api/auth/saml/metadata/${providerId}`;

/** How long a sign-in at a provider may take. */
export const LOGIN_SECONDS = 600;

type Deps = {
  db: Knex;
  clock: Clock;
  ids: Ids;
  log: Log;
  vault: Vault;
  throttle: Throttle;
  admission: Admission;
  providers: Providers;
  oidc: ReturnType<typeof createOidc>;
  saml: ReturnType<typeof createSaml>;
};

/** Signing in at a provider with the browser: begun here, answered there, finished by the browser that began. */
export function createFederation({
  db,
  clock,
  ids,
  log,
  vault,
  throttle,
  admission,
  providers,
  oidc,
  saml,
}: Deps) {
  const contextOf = (loginId: string, field: 'sealed' | 'outcome') => `login:${loginId}:${field}`;

  function unavailable(provider: Provider, error: unknown): never {
    // Of ours, a missing master key is no business of whoever signs in; the log has it.
    if (error instanceof AppError && error.code !== 'master_key_missing') throw error;
    log.warn({ err: error, providerId: provider.id }, 'an identity provider cannot be used');
    throw new AppError('provider_unavailable', 'The identity provider cannot be used now.');
  }

  /** Remembers what must come back. `state` goes with the browser to the provider, `browserToken` stays in a cookie. */
  async function remember(
    provider: Provider,
    returnTo: string,
    state: ReturnType<typeof newToken>,
    pending: object,
  ): Promise<string> {
    const id = ids.next('lgn');
    const browser = newToken('browser');
    await insertLogin(db, {
      id,
      provider_id: provider.id,
      state_hash: state.hash,
      browser_hash: browser.hash,
      return_to: returnTo,
      outcome: null,
      sealed: vault.seal(JSON.stringify(pending), contextOf(id, 'sealed')),
      expires_at: new Date(clock.now().getTime() + LOGIN_SECONDS * 1_000),
    });
    return browser.token;
  }

  const open = (login: LoginRow, field: 'sealed' | 'outcome'): unknown =>
    JSON.parse(vault.open(login[field] ?? '', contextOf(login.id, field)));

  async function enabledProvider(login: LoginRow, source: RequestSource): Promise<Provider> {
    const provider = await Provider.query(db).findById(login.provider_id).where({ enabled: true });
    return (
      provider ??
      admission.refuse(source, {
        providerId: login.provider_id,
        reason: 'the provider is disabled',
      })
    );
  }

  const unknownLogin = (source: RequestSource) =>
    admission.refuse(
      source,
      { reason: 'no such sign-in is under way in this browser' },
      'No such sign-in is under way in this browser; begin again.',
    );

  /** The sign-in that this browser began, taken once. Error: `login_failed`. */
  async function take(
    state: string,
    browserToken: string | undefined,
    source: RequestSource,
  ): Promise<LoginRow> {
    const login = await takeLogin(db, {
      stateHash: tokenHash(state),
      browserHash: tokenHash(browserToken ?? ''),
      now: clock.now(),
    });
    return login ?? unknownLogin(source);
  }

  /** Begins a sign-in; `start` asks the provider where the browser goes, and what must come back. */
  async function begin(
    kind: 'oidc' | 'saml',
    { providerId, returnTo }: Omit<Start, 'origin'>,
    source: RequestSource,
    start: (provider: Provider, state: string) => Promise<{ url: string; pending: object }>,
  ): Promise<Started> {
    await throttle.step(source.address);
    const provider = await providers.choose(kind, providerId);
    try {
      const state = newToken('state');
      const { url, pending } = await start(provider, state.token);
      return { redirectUrl: url, browserToken: await remember(provider, returnTo, state, pending) };
    } catch (error) {
      return unavailable(provider, error);
    }
  }

  /** Whom a provider vouches for. Errors: `login_failed`, `provider_unavailable`. */
  async function vouched(
    provider: Provider,
    source: RequestSource,
    ask: () => Promise<Profile>,
  ): Promise<Profile> {
    try {
      return await ask();
    } catch (error) {
      if (error instanceof SignInRefused)
        return admission.refuse(source, { providerId: provider.id, reason: error.message });
      return unavailable(provider, error);
    }
  }

  return {
    /** Errors: `invalid_request` (provider), `too_many_requests`, `provider_unavailable`. */
    startOidc: ({ origin, ...start }: Start, source: RequestSource): Promise<Started> =>
      begin('oidc', start, source, (provider, state) => {
        const config = providers.openConfig(provider) as OidcConfig;
        return oidc.start(config, { state, redirectUri: origin + callbackOf(provider.id, config) });
      }),

    /** Errors: `login_failed`, `provider_unavailable`, `too_many_requests`. */
    async finishOidc(
      { query, path }: { query: URLSearchParams; path: string },
      browserToken: string | undefined,
      source: RequestSource,
    ): Promise<Finished> {
      await throttle.step(source.address);
      const login = await take(query.get('state') ?? '', browserToken, source);
      const provider = await enabledProvider(login, source);
      // A code that came back where another provider sends its own belongs to that one: it must not be handed on.
      if (path !== callbackOf(provider.id, provider.config)) {
        return admission.refuse(source, {
          providerId: provider.id,
          reason: `the answer came to ${path}`,
        });
      }
      const profile = await vouched(provider, source, () =>
        oidc.finish(
          providers.openConfig(provider) as OidcConfig,
          open(login, 'sealed') as OidcPending,
          query,
        ),
      );
      return {
        tokens: await admission.ofProfile(provider, profile, source),
        returnTo: login.return_to,
      };
    },

    /** Errors: as for `startOidc`. */
    startSaml: ({ origin, ...start }: Start, source: RequestSource): Promise<Started> =>
      begin('saml', start, source, (provider, state) => {
        const config = providers.openConfig(provider) as SamlConfig;
        const audience = saml.audienceOf(config, origin + samlMetadata(provider.id));
        return saml.start(config, {
          relayState: state,
          callbackUrl: origin + SAML_CALLBACK,
          audience,
          now: clock.now(),
        });
      }),

    /**
     * Checks a response. It comes from the provider's page, without our cookies, so it is kept for the browser that
     * began; another browser cannot finish it. Error: `login_failed`.
     */
    async receiveSaml(
      { samlResponse, relayState }: { samlResponse: string; relayState: string },
      source: RequestSource,
    ): Promise<void> {
      await throttle.step(source.address);
      const login =
        (await findWaitingLogin(db, tokenHash(relayState), clock.now())) ??
        (await unknownLogin(source));
      const provider = await enabledProvider(login, source);
      const profile = await vouched(provider, source, () =>
        saml.finish(
          providers.openConfig(provider) as SamlConfig,
          open(login, 'sealed') as SamlPending,
          samlResponse,
        ),
      );
      const kept = await keepOutcome(
        db,
        login.id,
        vault.seal(JSON.stringify(profile), contextOf(login.id, 'outcome')),
      );
      if (!kept) await unknownLogin(source);
    },

    /** Error: `login_failed`. */
    async finishSaml(
      state: string,
      browserToken: string | undefined,
      source: RequestSource,
    ): Promise<Finished> {
      await throttle.step(source.address);
      const login = await take(state, browserToken, source);
      if (login.outcome === null) return unknownLogin(source);
      const provider = await enabledProvider(login, source);
      return {
        tokens: await admission.ofProfile(provider, open(login, 'outcome') as Profile, source),
        returnTo: login.return_to,
      };
    },

    /** What a SAML provider must be told of us. Error: `not_found`. */
    async samlMetadata(providerId: string, origin: string): Promise<string> {
      const provider = await Provider.query(db)
        .findById(providerId)
        .where({ kind: 'saml', enabled: true });
      if (!provider) throw notFound('provider', providerId);
      const config = providers.openConfig(provider) as SamlConfig;
      return saml.metadata(config, {
        callbackUrl: origin + SAML_CALLBACK,
        audience: saml.audienceOf(config, origin + samlMetadata(providerId)),
      });
    },
  };
}
