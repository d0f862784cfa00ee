import type { Knex } from '../../db/core/knex.ts';
import { Provider } from '../../db/models/Provider.ts';
import { findLocalUser } from '../../db/models/User.ts';
import { AppError, isTooManyRequests } from '../../domain/shared/errors.ts';
import { LOCAL_PROVIDER, SignInRefused } from '../../domain/auth/providers.ts';
import type { Log } from '../../platform/log.ts';
import type { LoginSession } from './loginSession.ts';
import type { Passwords } from './passwords.ts';
import type { createLdap } from './providers/kinds/ldap.ts';
import type { LdapConfig } from './providers/kinds/ldapConfig.ts';
import type { Providers } from './providers/providers.ts';
import type { ProviderWaits } from './providers/waits.ts';
import type { RequestSource, SessionTokens } from './sessions.ts';
import { localAccountKey, type LoginThrottle } from './loginThrottle.ts';

export type SignIn = ReturnType<typeof createSignIn>;

export type Credentials = { username: string; password: string; tenantId?: string };

type Deps = {
  db: Knex;
  log: Log;
  passwords: Passwords;
  loginThrottle: LoginThrottle;
  loginSession: LoginSession;
  providers: Providers;
  providerWaits: ProviderWaits;
  ldap: ReturnType<typeof createLdap>;
};

const WRONG_CREDENTIALS = 'User name or password is wrong.';

/** Login with a password, for local accounts and LDAP directories. */
export function createSignIn({
  db,
  log,
  passwords,
  loginThrottle,
  loginSession,
  providers,
  providerWaits,
  ldap,
}: Deps) {
  /**
   * Counts an attempt. Throttled attempts are audited, so that a continuing attack stays visible.
   */
  const countAttempt = (source: RequestSource, providerId: string, account: string) =>
    loginThrottle.attempt({ account, address: source.address }).catch(async (error: unknown) => {
      if (error instanceof AppError) await loginSession.recordThrottled(source, providerId);
      throw error;
    });

  return {
    /**
     * Login with a local account. An unknown name, a wrong password and a disabled account take the
     * same time and get the same response. Errors: `login_failed`, `too_many_requests`.
     */
    async local(
      { username, password, tenantId }: Credentials,
      source: RequestSource,
    ): Promise<SessionTokens> {
      const attempt = await countAttempt(source, LOCAL_PROVIDER, localAccountKey(username));
      const [user, provider] = await Promise.all([
        findLocalUser(db, username),
        Provider.query(db).findById(LOCAL_PROVIDER),
      ]);
      const passwordMatches = await passwords.verify(user?.passwordHash, password);
      if (!passwordMatches || !user?.enabled || !provider?.enabled) {
        // Users sometimes enter a password as user name, so only names of existing accounts are
        // audited.
        const detail = {
          providerId: LOCAL_PROVIDER,
          userId: user?.id ?? null,
          username: user?.username ?? null,
        };
        return loginSession.reject(
          source,
          { ...detail, reason: passwordMatches ? 'disabled' : 'wrong password' },
          WRONG_CREDENTIALS,
        );
      }
      await attempt.succeeded();
      return loginSession.startForUser(user, source, tenantId);
    },

    /**
     * Login with an LDAP directory. Errors: `invalid_request` (provider), `login_failed`,
     * `too_many_requests`, `provider_unavailable`.
     */
    async ldap(
      { username, password, tenantId, providerId }: Credentials & { providerId?: string },
      source: RequestSource,
    ): Promise<SessionTokens> {
      const provider = await providers.findEnabled('ldap', providerId);
      const attempt = await countAttempt(source, provider.id, `${provider.id}:${username}`);
      const authenticate = async () =>
        ldap.authenticate(providers.openConfig(provider) as LdapConfig, username, password);
      const profile = await providerWaits
        .run(provider.id, source.address, authenticate)
        .catch(async (error: unknown) => {
          if (error instanceof SignInRefused)
            return loginSession.reject(
              source,
              { providerId: provider.id, reason: error.message },
              WRONG_CREDENTIALS,
            );
          // The directory did not check the password, so the attempt does not count.
          await attempt.inconclusive();
          if (isTooManyRequests(error)) throw error;
          log.warn({ err: error, providerId: provider.id }, 'LDAP directory is not available');
          throw new AppError('provider_unavailable', 'The directory is not available.');
        });
      await attempt.succeeded();
      return loginSession.startForProfile(provider, profile, source, tenantId);
    },
  };
}
