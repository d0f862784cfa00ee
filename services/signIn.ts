import type { Knex } from '../db/core/knex.ts';
import { Provider } from '../db/models/Provider.ts';
import { findLocalUser } from '../db/models/User.ts';
import { AppError } from '../domain/shared/errors.ts';
import { LOCAL_PROVIDER, SignInRefused } from '../domain/auth/providers.ts';
import type { Log } from '../platform/log.ts';
import type { Admission } from './auth/loginSession.ts';
import type { Passwords } from './auth/passwords.ts';
import type { createLdap, LdapConfig } from './auth/providers/kinds/ldap.ts';
import type { Providers } from './auth/providers/providers.ts';
import type { RequestSource, SessionTokens } from './auth/sessions.ts';
import { localAccount, type Throttle } from './throttle.ts';

export type SignIn = ReturnType<typeof createSignIn>;

export type Credentials = { username: string; password: string; tenantId?: string };

type Deps = {
  db: Knex;
  log: Log;
  passwords: Passwords;
  throttle: Throttle;
  admission: Admission;
  providers: Providers;
  ldap: ReturnType<typeof createLdap>;
};

const WRONG = 'User name or password is wrong.';

/** Signing in with a password: here, or at a directory. */
export function createSignIn({ db, log, passwords, throttle, admission, providers, ldap }: Deps) {
  /** Counts an attempt; one too many is recorded, so that an attack that goes on does not go quiet. */
  const counted = (source: RequestSource, providerId: string, account: string) =>
    throttle.attempt({ account, address: source.address }).catch(async (error: unknown) => {
      if (error instanceof AppError) await admission.noteThrottled(source, providerId);
      throw error;
    });

  return {
    /**
     * With a local account. Somebody unknown, a wrong password and a disabled account take the same time and get
     * the same answer. Errors: `login_failed`, `too_many_requests`.
     */
    async local(
      { username, password, tenantId }: Credentials,
      source: RequestSource,
    ): Promise<SessionTokens> {
      const attempt = await counted(source, LOCAL_PROVIDER, localAccount(username));
      const [user, provider] = await Promise.all([
        findLocalUser(db, username),
        Provider.query(db).findById(LOCAL_PROVIDER),
      ]);
      const right = await passwords.verify(user?.passwordHash, password);
      if (!right || !user?.enabled || !provider?.enabled) {
        // What was typed as a name may be a password: only names of accounts are recorded.
        const detail = {
          providerId: LOCAL_PROVIDER,
          userId: user?.id ?? null,
          username: user?.username ?? null,
        };
        return admission.refuse(
          source,
          { ...detail, reason: right ? 'disabled' : 'wrong password' },
          WRONG,
        );
      }
      await attempt.succeeded();
      return admission.ofUser(user, source, tenantId);
    },

    /** With a directory. Errors: `invalid_request` (provider), `login_failed`, `too_many_requests`, `provider_unavailable`. */
    async ldap(
      { username, password, tenantId, providerId }: Credentials & { providerId?: string },
      source: RequestSource,
    ): Promise<SessionTokens> {
      const provider = await providers.choose('ldap', providerId);
      const attempt = await counted(source, provider.id, `${provider.id}:${username}`);
      const ask = async () =>
        ldap.authenticate(providers.openConfig(provider) as LdapConfig, username, password);
      const profile = await ask().catch(async (error: unknown) => {
        if (error instanceof SignInRefused)
          return admission.refuse(
            source,
            { providerId: provider.id, reason: error.message },
            WRONG,
          );
        // Nobody's password was wrong.
        await attempt.undecided();
        log.warn({ err: error, providerId: provider.id }, 'a directory cannot be asked');
        throw new AppError('provider_unavailable', 'The directory cannot be asked now.');
      });
      await attempt.succeeded();
      return admission.ofProfile(provider, profile, source, tenantId);
    },
  };
}
