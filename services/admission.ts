import { findGivings, principalsOf } from '../db/access.ts';
import type { Commit, Work } from '../db/commit.ts';
import type { Knex } from '../db/knex.ts';
import type { Provider } from '../db/models/Provider.ts';
import { User } from '../db/models/User.ts';
import { anonymousCaller, type Caller } from '../domain/caller.ts';
import { AppError } from '../domain/errors.ts';
import type { Profile } from '../domain/providers.ts';
import { PLATFORM } from '../domain/scope.ts';
import type { Ids } from '../platform/ids.ts';
import type { DispatchTask } from '../temporal/contracts.ts';
import type { Audit } from './audit.ts';
import type { RequestSource, Sessions, SessionTokens } from './sessions.ts';
import { userSubject, userView } from './userTrail.ts';

export type Admission = ReturnType<typeof createAdmission>;

type Deps = { db: Knex; commit: Commit<DispatchTask>; ids: Ids; sessions: Sessions; audit: Audit };

/** What happens when somebody has shown who they are, or has not. */
export function createAdmission({ db, commit, ids, sessions, audit }: Deps) {
  const callerOf = (user: { id: string; tenantId: string }, source: RequestSource): Caller => ({
    ...anonymousCaller(source), kind: 'session', actorId: user.id, tenantId: user.tenantId,
  });

  /** Records why somebody was not let in, and says as little as possible about it. */
  async function refuse(source: RequestSource, detail: object, message = 'Signing in failed.'): Promise<never> {
    await audit.denied(anonymousCaller(source), 'login.failed', detail);
    throw new AppError('login_failed', message);
  }

  async function enter(work: Work<DispatchTask>, user: User, source: RequestSource, tenantId: string | undefined): Promise<SessionTokens> {
    const trx = await work.trx();
    const entered = await User.query(trx).patchAndFetchById(user.id, { lastLoginAt: work.now });
    const after = { providerId: user.providerId, groups: user.externalGroups };
    work.audit('login', userSubject(user), { after });
    return sessions.issue(work, entered, source, tenantId ?? user.tenantId);
  }

  /** Makes or refreshes the record of a person whom a provider vouches for. */
  async function upsert(work: Work<DispatchTask>, provider: Provider, profile: Profile, newId: string): Promise<User> {
    const trx = await work.trx();
    const { externalId, groups: externalGroups, username, displayName, email } = profile;
    const key = { provider_id: provider.id, external_id: externalId };
    await User.query(trx).insert({
      id: newId, providerId: provider.id, externalId, externalGroups, username, displayName, email, tenantId: PLATFORM,
      enabled: true, passwordHash: null, mustChangePassword: false, lastLoginAt: null,
      createdAt: work.now, updatedAt: work.now, version: 1,
    }).onConflict(['provider_id', 'external_id']).ignore();
    const before = await User.query(trx).where(key).first().forUpdate().throwIfNotFound();
    if (before.id === newId) {
      const tenantId = await homeOf(trx, before);
      const made = await User.query(trx).patchAndFetchById(newId, { tenantId });
      work.audit('user.create', userSubject(made), { after: userView(made) });
      work.emit('user.created', userSubject(made), userView(made));
      return made;
    }
    const same = before.username === username && before.displayName === displayName && before.email === email;
    const after = await User.query(trx).patchAndFetchById(before.id, {
      externalGroups, username, displayName, email, ...(!same && { updatedAt: work.now, version: before.version + 1 }),
    });
    if (!same) {
      work.audit('user.update', userSubject(after), { before: userView(before), after: userView(after) });
      work.emit('user.updated', userSubject(after), userView(after));
    }
    return after;
  }

  return {
    refuse,

    /** Begins a session of a local account whose password was right. Error: `login_failed`. */
    async ofUser(known: User, source: RequestSource, tenantId: string | undefined): Promise<SessionTokens> {
      const tokens = await commit(callerOf(known, source), async (work) => {
        const user = await User.query(await work.trx()).findById(known.id).forUpdate();
        // The account may have been disabled, or its password reset, while the hash was worked out.
        if (!user?.enabled || user.passwordHash !== known.passwordHash) {
          work.audit('login.failed', userSubject(known), { outcome: 'denied', after: { reason: 'changed meanwhile' } });
          return undefined;
        }
        return enter(work, user, source, tenantId);
      });
      if (!tokens) throw new AppError('login_failed', 'User name or password is wrong.');
      return tokens;
    },

    /** Begins a session of whoever a provider has vouched for. Error: `login_failed` when the account is disabled. */
    async ofProfile(provider: Provider, profile: Profile, source: RequestSource, tenantId?: string): Promise<SessionTokens> {
      const known = await User.query(db).where({ provider_id: provider.id, external_id: profile.externalId }).first();
      const id = known?.id ?? ids.next('usr');
      const caller = callerOf(known ?? { id, tenantId: PLATFORM }, source);
      const tokens = await commit(caller, async (work) => {
        const user = await upsert(work, provider, profile, id);
        if (!user.enabled) {
          work.audit('login.failed', userSubject(user), { outcome: 'denied', after: { reason: 'disabled' } });
          return undefined;
        }
        return enter(work, user, source, tenantId);
      });
      if (!tokens) throw new AppError('login_failed', 'The account is disabled.');
      return tokens;
    },
  };
}

/** Where somebody new belongs: the tenant of all their roles, when it is one. */
async function homeOf(trx: Knex, user: User): Promise<string> {
  const givings = await findGivings(trx, principalsOf(user.id, user.providerId, user.externalGroups));
  const [tenant, ...others] = new Set(givings.map(({ place }) => place.tenantId));
  return tenant !== undefined && others.length === 0 ? tenant : PLATFORM;
}
