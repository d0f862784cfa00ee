import type { Commit, Work } from '../../db/commit.ts';
import { isUniqueViolation } from '../../db/core/constraints.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { Provider } from '../../db/models/Provider.ts';
import { User } from '../../db/models/User.ts';
import { anonymousCaller, type Caller } from '../../domain/shared/caller.ts';
import { AppError } from '../../domain/shared/errors.ts';
import type { Profile } from '../../domain/auth/providers.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import type { Ids } from '../../platform/ids.ts';
import type { DispatchTask } from '../../temporal/contracts.ts';
import type { Audit } from '../audit.ts';
import type { RequestSource, Sessions, SessionTokens } from './sessions.ts';
import { sessionTenant } from '../sessionTenant.ts';
import { userEvent, userSubject, userView } from '../userTrail.ts';

export type Admission = ReturnType<typeof createAdmission>;

type Deps = { db: Knex; commit: Commit<DispatchTask>; ids: Ids; sessions: Sessions; audit: Audit };

/** What happens when somebody has shown who they are, or has not. */
export function createAdmission({ db, commit, ids, sessions, audit }: Deps) {
  const callerOf = (user: { id: string; tenantId: string }, source: RequestSource): Caller => ({
    ...anonymousCaller(source),
    kind: 'session',
    actorId: user.id,
    tenantId: user.tenantId,
  });

  /** Records why somebody was not let in, and says as little as possible about it. */
  async function refuse(
    source: RequestSource,
    detail: Readonly<Record<string, unknown>> & { userId?: string | null },
    message = 'Signing in failed.',
  ): Promise<never> {
    await audit.denied(anonymousCaller(source), 'login.failed', detail, {
      about: detail.userId ?? undefined,
    });
    throw new AppError('login_failed', message);
  }

  async function enter(
    work: Work<DispatchTask>,
    user: User,
    source: RequestSource,
    tenantId: string | undefined,
  ): Promise<SessionTokens> {
    const trx = await work.trx();
    const entered = await User.query(trx).patchAndFetchById(user.id, { lastLoginAt: work.now });
    const after = { providerId: user.providerId, groups: user.externalGroups };
    work.audit('login', userSubject(user), { after });
    return sessions.issue(work, entered, source, await sessionTenant(trx, user, tenantId));
  }

  /** Makes the record of a person whom a provider vouches for. */
  async function make(
    work: Work<DispatchTask>,
    provider: Provider,
    profile: Profile,
    id: string,
  ): Promise<User> {
    const trx = await work.trx();
    const { externalId, groups: externalGroups, username, displayName, email } = profile;
    const user = await User.query(trx).insertAndFetch({
      id,
      providerId: provider.id,
      externalId,
      externalGroups,
      username,
      displayName,
      email,
      tenantId: PLATFORM,
      enabled: true,
      passwordHash: null,
      mustChangePassword: false,
      lastLoginAt: null,
      createdAt: work.now,
      updatedAt: work.now,
      version: 1,
    });
    work.audit('user.create', userSubject(user), { after: userView(user) });
    work.emit('auth.user.created', userSubject(user), userEvent(user));
    return user;
  }

  /** Brings the record of somebody known up to what the provider says now. */
  async function refresh(work: Work<DispatchTask>, id: string, profile: Profile): Promise<User> {
    const trx = await work.trx();
    const before = await User.query(trx).findById(id).forUpdate().throwIfNotFound();
    const { groups: externalGroups, username, displayName, email } = profile;
    const same =
      before.username === username && before.displayName === displayName && before.email === email;
    const after = await User.query(trx).patchAndFetchById(id, {
      externalGroups,
      username,
      displayName,
      email,
      ...(!same && { updatedAt: work.now, version: before.version + 1 }),
    });
    if (!same) {
      work.audit('user.update', userSubject(after), {
        before: userView(before),
        after: userView(after),
      });
      work.emit('auth.user.updated', userSubject(after), userEvent(after));
    }
    return after;
  }

  async function admit(
    provider: Provider,
    profile: Profile,
    source: RequestSource,
    known: User | undefined,
    tenantId: string | undefined,
  ): Promise<SessionTokens | undefined> {
    const id = known?.id ?? ids.next('usr');
    return commit(callerOf(known ?? { id, tenantId: PLATFORM }, source), async (work) => {
      const user = known
        ? await refresh(work, id, profile)
        : await make(work, provider, profile, id);
      if (user.enabled) return enter(work, user, source, tenantId);
      work.audit('login.failed', userSubject(user), {
        outcome: 'denied',
        after: { reason: 'disabled' },
      });
      return undefined;
    });
  }

  return {
    refuse,

    /** Records that somebody was not even heard, because of the attempts before. */
    noteThrottled: (source: RequestSource, providerId: string): Promise<void> =>
      audit.denied(anonymousCaller(source), 'login.throttled', { providerId }),

    /** Begins a session of a local account whose password was right. Error: `login_failed`. */
    async ofUser(
      known: User,
      source: RequestSource,
      tenantId: string | undefined,
    ): Promise<SessionTokens> {
      const tokens = await commit(callerOf(known, source), async (work) => {
        const user = await User.query(await work.trx())
          .findById(known.id)
          .forUpdate();
        // The account may have been disabled, or its password reset, while the hash was worked out.
        if (!user?.enabled || user.passwordHash !== known.passwordHash) {
          work.audit('login.failed', userSubject(known), {
            outcome: 'denied',
            after: { reason: 'changed meanwhile' },
          });
          return undefined;
        }
        return enter(work, user, source, tenantId);
      });
      if (!tokens) throw new AppError('login_failed', 'User name or password is wrong.');
      return tokens;
    },

    /** Begins a session of whoever a provider has vouched for. Error: `login_failed` when the account is disabled. */
    async ofProfile(
      provider: Provider,
      profile: Profile,
      source: RequestSource,
      tenantId?: string,
    ): Promise<SessionTokens> {
      const find = () =>
        User.query(db).where({ provider_id: provider.id, external_id: profile.externalId }).first();
      const known = await find();
      const tokens = await admit(provider, profile, source, known, tenantId).catch(
        async (error: unknown) => {
          // Two first logins at once: the other one has made the record.
          if (known || !isUniqueViolation(error)) throw error;
          return admit(provider, profile, source, await find(), tenantId);
        },
      );
      if (!tokens) throw new AppError('login_failed', 'The account is disabled.');
      return tokens;
    },
  };
}
