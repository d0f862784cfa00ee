import type { Commit, Work } from '../../db/core/commit.ts';
import { isUniqueViolation } from '../../db/core/constraints.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { Provider } from '../../db/models/Provider.ts';
import { insertUser, User } from '../../db/models/User.ts';
import { anonymousCaller, type Caller } from '../../domain/shared/caller.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { shownName, type Profile } from '../../domain/auth/providers.ts';
import { escapeControls } from '../../domain/shared/controlCharacters.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import type { Ids } from '../../platform/ids.ts';
import type { DeniedAttempts } from '../audit/deniedAttempts.ts';
import type { RequestSource, Sessions, SessionTokens } from './sessions.ts';
import { resolveSessionTenant } from './sessionTenant.ts';
import { userRecord } from './userAudit.ts';

export type LoginSession = ReturnType<typeof createLoginSession>;

/** An account that a failed attempt was for. */
export type AttackedAccount = Pick<User, 'id' | 'tenantId'>;

type Deps = {
  db: Knex;
  commit: Commit;
  ids: Ids;
  sessions: Sessions;
  deniedAttempts: DeniedAttempts;
};

/** Starts sessions for authenticated users, and audits failed logins. */
export function createLoginSession({ db, commit, ids, sessions, deniedAttempts }: Deps) {
  const callerOf = (user: { id: string; tenantId: string }, source: RequestSource): Caller => ({
    ...anonymousCaller(source),
    kind: 'session',
    actorId: user.id,
    tenantId: user.tenantId,
  });

  /** What is audited of an attempt: at the account and its tenant if it is known, or at the platform. */
  const auditAt = (source: RequestSource, account: AttackedAccount | undefined) => ({
    caller: { ...anonymousCaller(source), ...(account && { tenantId: account.tenantId }) },
    target: account ? { subject: userRecord.subject(account) } : {},
  });

  /**
   * Audits a failed login with its reason and throws `login_failed`, whose message does not contain
   * the reason.
   */
  async function reject(
    source: RequestSource,
    detail: Readonly<Record<string, unknown>>,
    {
      message = 'Signing in failed.',
      account,
    }: { message?: string; account?: AttackedAccount } = {},
  ): Promise<never> {
    // A reason may quote what the provider has sent, which must not prevent the entry.
    const storable = Object.entries(detail).map(([name, value]): [string, unknown] => [
      name,
      typeof value === 'string' ? escapeControls(value) : value,
    ]);
    const entry = Object.fromEntries(storable);
    const { caller, target } = auditAt(source, account);
    await deniedAttempts.record(caller, 'login.failed', entry, {
      ...target,
      accountId: account?.id,
    });
    throw new AppError('login_failed', message);
  }

  /** Records the login and creates the session. */
  async function startSession(
    work: Work,
    user: User,
    source: RequestSource,
    tenantId: string | undefined,
    endsAt?: Date,
  ): Promise<SessionTokens> {
    const trx = await work.trx();
    const updatedUser = await User.query(trx).patchAndFetchById(user.id, { lastLoginAt: work.now });
    const after = { providerId: user.providerId, groups: user.externalGroups };
    work.audit('login', userRecord.subject(user), { after });
    return sessions.start(
      work,
      updatedUser,
      source,
      await resolveSessionTenant(trx, user, tenantId),
      endsAt,
    );
  }

  /** Creates the user of a person who signs in with an identity provider for the first time. */
  async function createUser(
    work: Work,
    provider: Provider,
    profile: Profile,
    id: string,
  ): Promise<User> {
    const trx = await work.trx();
    const { externalId, groups: externalGroups, username, email } = profile;
    const user = await insertUser(
      trx,
      {
        id,
        providerId: provider.id,
        externalId,
        externalGroups,
        username,
        displayName: shownName(profile),
        email,
        tenantId: PLATFORM,
        passwordHash: null,
        mustChangePassword: false,
      },
      work.now,
    );
    userRecord.created(work, user);
    return user;
  }

  /** Updates the user from the profile of the identity provider. */
  async function updateUser(work: Work, id: string, profile: Profile): Promise<User> {
    const trx = await work.trx();
    const before = await User.query(trx).findById(id).forUpdate().throwIfNotFound();
    const { groups: externalGroups, username, email } = profile;
    const displayName = shownName(profile);
    const isUnchanged =
      before.username === username && before.displayName === displayName && before.email === email;
    const after = await User.query(trx).patchAndFetchById(id, {
      externalGroups,
      username,
      displayName,
      email,
      ...(!isUnchanged && { updatedAt: work.now, version: before.version + 1 }),
    });
    if (!isUnchanged) userRecord.updated(work, before, after);
    return after;
  }

  /** Commits a login; undefined if the account is disabled. */
  async function attemptStart(
    provider: Provider,
    profile: Profile,
    source: RequestSource,
    known: User | undefined,
    tenantId: string | undefined,
  ): Promise<SessionTokens | undefined> {
    const id = known?.id ?? ids.next('usr');
    return commit(callerOf(known ?? { id, tenantId: PLATFORM }, source), async (work) => {
      const user = known
        ? await updateUser(work, id, profile)
        : await createUser(work, provider, profile, id);
      const { sessionEndsAt } = profile;
      const endsAt = sessionEndsAt === undefined ? undefined : new Date(sessionEndsAt);
      if (user.enabled) return startSession(work, user, source, tenantId, endsAt);
      work.audit('login.failed', userRecord.subject(user), {
        outcome: 'denied',
        after: { reason: 'disabled' },
      });
      return undefined;
    });
  }

  return {
    reject,

    /**
     * Audits a login that was rejected because of earlier attempts. Their number is not limited, so all
     * of a network have one budget: whether an entry is written must not show that an account exists.
     */
    recordThrottled(
      source: RequestSource,
      providerId: string,
      account: AttackedAccount | undefined,
    ): Promise<void> {
      const { caller, target } = auditAt(source, account);
      const detail = { providerId, userId: account?.id ?? null };
      return deniedAttempts.record(caller, 'login.throttled', detail, target);
    },

    /**
     * Starts a session of a local account after its password was verified. Error: `login_failed`.
     */
    async startForUser(
      known: User,
      source: RequestSource,
      tenantId: string | undefined,
    ): Promise<SessionTokens> {
      const tokens = await commit(callerOf(known, source), async (work) => {
        const user = await User.query(await work.trx())
          .findById(known.id)
          .forUpdate();
        // The account may have been disabled, or its password reset, during verification.
        if (!user?.enabled || user.passwordHash !== known.passwordHash) {
          work.audit('login.failed', userRecord.subject(known), {
            outcome: 'denied',
            after: { reason: 'changed during login' },
          });
          return undefined;
        }
        return startSession(work, user, source, tenantId);
      });
      if (!tokens) throw new AppError('login_failed', 'User name or password is wrong.');
      return tokens;
    },

    /**
     * Starts a session for a profile that an identity provider has authenticated. Creates or
     * updates the user. Error: `login_failed` if the account is disabled.
     */
    async startForProfile(
      provider: Provider,
      profile: Profile,
      source: RequestSource,
      tenantId?: string,
    ): Promise<SessionTokens> {
      const find = () =>
        User.query(db).where({ provider_id: provider.id, external_id: profile.externalId }).first();
      const known = await find();
      const tokens = await attemptStart(provider, profile, source, known, tenantId).catch(
        async (error: unknown) => {
          // A concurrent first login of the same person has created the user.
          if (known || !isUniqueViolation(error)) throw error;
          return attemptStart(provider, profile, source, await find(), tenantId);
        },
      );
      if (!tokens) throw new AppError('login_failed', 'The account is disabled.');
      return tokens;
    },
  };
}
