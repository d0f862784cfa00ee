import type { Knex } from '../../db/core/knex.ts';
import { Provider } from '../../db/models/Provider.ts';
import { findLocalUser, User, whereUsername } from '../../db/models/User.ts';
import { AppError, isTooManyRequests } from '../../domain/shared/errors.ts';
import { isPasswordExpired } from '../../domain/auth/oneTimePasswords.ts';
import { LOCAL_PROVIDER, SignInRefused } from '../../domain/auth/providers.ts';
import type { Log } from '../../platform/log.ts';
import type { AttackedAccount, LoginSession } from './loginSession.ts';
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

type FindAccount = () => PromiseLike<AttackedAccount | undefined>;

const WRONG_CREDENTIALS = 'User name or password is wrong.';
const EXPIRED = 'The one-time password has expired. Ask an administrator to reset it.';

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
  const countAttempt = (
    source: RequestSource,
    { providerId, key, find }: { providerId: string; key: string; find: FindAccount },
  ) =>
    loginThrottle.attempt({
      account: key,
      address: source.address,
      onThrottled: async () => loginSession.recordThrottled(source, providerId, await find()),
    });

  async function checkLocal(username: string, password: string) {
    const [user, provider] = await Promise.all([
      findLocalUser(db, username),
      Provider.query(db).findById(LOCAL_PROVIDER),
    ]);
    const passwordMatches = await passwords.verify(user?.passwordHash, password);
    return { user, provider, passwordMatches };
  }

  /** The account of a directory with this name, if it is the only one. */
  async function findDirectoryUser(providerId: string, username: string) {
    const found = await User.query(db)
      .where({ provider_id: providerId })
      .modify(whereUsername, username)
      .limit(2);
    return found.length === 1 ? found[0] : undefined;
  }

  return {
    /**
     * Login with a local account. An unknown name, a wrong password and a disabled account take the
     * same time and get the same response; only who knows a one-time password learns that it has
     * expired. Errors: `login_failed`, `too_many_requests`.
     */
    async local(
      { username, password, tenantId }: Credentials,
      source: RequestSource,
    ): Promise<SessionTokens> {
      const attempt = await countAttempt(source, {
        providerId: LOCAL_PROVIDER,
        key: localAccountKey(username),
        find: () => findLocalUser(db, username),
      });
      const { user, provider, passwordMatches } = await attempt.check(() =>
        checkLocal(username, password),
      );
      const reject = (reason: string, message: string) =>
        loginSession.reject(
          source,
          // Users sometimes enter a password as user name, so only names of existing accounts are
          // audited.
          {
            providerId: LOCAL_PROVIDER,
            userId: user?.id ?? null,
            username: user?.username ?? null,
            reason,
          },
          { message, ...(user && { account: user }) },
        );
      if (!passwordMatches) return reject('wrong password', WRONG_CREDENTIALS);
      if (!user?.enabled || !provider?.enabled) return reject('disabled', WRONG_CREDENTIALS);
      if (isPasswordExpired(user, new Date())) return reject('one-time password expired', EXPIRED);
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
      const find = () => findDirectoryUser(provider.id, username);
      const attempt = await countAttempt(source, {
        providerId: provider.id,
        key: `${provider.id}:${username}`,
        find,
      });
      const authenticate = async () =>
        ldap.authenticate(providers.openConfig(provider) as LdapConfig, username, password);
      const profile = await providerWaits
        .run(provider.id, source.address, authenticate)
        .catch(async (error: unknown) => {
          if (error instanceof SignInRefused) {
            const account = await find();
            return loginSession.reject(
              source,
              { providerId: provider.id, userId: account?.id ?? null, reason: error.message },
              { message: WRONG_CREDENTIALS, ...(account && { account }) },
            );
          }
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
