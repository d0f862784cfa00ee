import { findGivings, keepingAdministrator, lockAccess, principalsOf } from '../../db/access/access.ts';
import type { Commit } from '../../db/commit.ts';
import { isUniqueViolation } from '../../db/core/constraints.ts';
import { keysetPage, whereGiven, type Page, type PageRequest } from '../../db/core/keyset.ts';
import type { Knex } from '../../db/core/knex.ts';
import { nextVersion, User } from '../../db/models/User.ts';
import { whereInScope } from '../../db/core/scopeSql.ts';
import { endSessions } from '../../db/auth/sessions.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError, checkVersion, invalidField, notFound } from '../../domain/shared/errors.ts';
import { LOCAL_PROVIDER } from '../../domain/auth/providers.ts';
import type { Ids } from '../../platform/ids.ts';
import type { DispatchTask } from '../../temporal/contracts.ts';
import type { Access } from '../access.ts';
import type { Audit } from '../audit.ts';
import type { Passwords } from './passwords.ts';
import { own } from './sessions.ts';
import { localAccount, type Throttle } from '../throttle.ts';
import { userEvent, userSubject, userView } from '../userTrail.ts';

export type Users = ReturnType<typeof createUsers>;

export type UserRequest = {
  username: string;
  displayName?: string;
  email?: string | null;
  tenantId?: string;
  password?: string;
  mustChangePassword?: boolean;
};
export type UserChange = {
  displayName?: string;
  email?: string | null;
  tenantId?: string;
  enabled?: boolean;
};
export type UserFilter = {
  providerId?: string;
  username?: string;
  enabled?: boolean;
  tenantId?: string;
};

/** A user, and the password that was made up for them, which is shown this once. */
export type UserWithPassword = { user: User; oneTimePassword: string | null };

type Deps = {
  db: Knex;
  commit: Commit<DispatchTask>;
  access: Access;
  ids: Ids;
  passwords: Passwords;
  throttle: Throttle;
  audit: Audit;
};

/** People with accounts. */
export function createUsers({ db, commit, access, ids, passwords, throttle, audit }: Deps) {
  async function find(caller: Caller, id: string): Promise<User> {
    const query = User.query(db).findById(id);
    whereInScope(query, access.scope(caller, 'user:read'));
    const user = await query;
    if (!user) throw notFound('user', id);
    return user;
  }

  /** A user that the caller may change: `user:write` where the user stands. */
  async function findToWrite(caller: Caller, id: string): Promise<User> {
    const user = await find(caller, id);
    await access.require(caller, 'user:write', user);
    return user;
  }

  /**
   * Who resets a password, enables or moves an account could act as its owner, so they must hold all that the owner
   * holds, at the moment of the change: `lockAccess` comes first, and `now` is the current caller.
   */
  async function requireAsOwner(now: Caller, trx: Knex, user: User): Promise<void> {
    access.mustHold(
      now,
      await findGivings(trx, principalsOf(user.id, user.providerId, user.externalGroups)),
    );
  }

  const chosenOrMadeUp = async (password: string | undefined) =>
    password === undefined
      ? passwords.makeUp()
      : { oneTimePassword: null, passwordHash: await passwords.hash(password) };

  return {
    read: find,

    /** Users inside the caller's scope, newest first. */
    async list(caller: Caller, filter: UserFilter, page: PageRequest): Promise<Page<User>> {
      const query = User.query(db);
      whereInScope(query, access.scope(caller, 'user:read'));
      whereGiven(query, {
        provider_id: filter.providerId,
        enabled: filter.enabled,
        tenant_id: filter.tenantId,
      });
      if (filter.username !== undefined)
        void query.whereRaw('lower(username) = lower(?)', [filter.username]);
      return keysetPage(query, page);
    },

    /**
     * Makes a local account. Without a password one for the first login is made up.
     * Errors: `permission_denied`, `invalid_request` (password), `conflict` (user name).
     */
    async create(caller: Caller, request: UserRequest): Promise<UserWithPassword> {
      const {
        username,
        displayName = username,
        email = null,
        tenantId = caller.tenantId,
      } = request;
      await access.require(caller, 'user:write', { tenantId });
      if (request.password !== undefined)
        await passwords.check(request.password, username, '/password');
      const { oneTimePassword, passwordHash } = await chosenOrMadeUp(request.password);
      const mustChangePassword = oneTimePassword !== null || (request.mustChangePassword ?? true);
      return commit({ ...caller, tenantId }, async (work) => {
        const user = await User.query(await work.trx())
          .insertAndFetch({
            id: ids.next('usr'),
            providerId: LOCAL_PROVIDER,
            externalId: null,
            externalGroups: [],
            username,
            displayName,
            email,
            tenantId,
            enabled: true,
            passwordHash,
            mustChangePassword,
            lastLoginAt: null,
            createdAt: work.now,
            updatedAt: work.now,
            version: 1,
          })
          .catch((error: unknown) => {
            throw isUniqueViolation(error)
              ? new AppError('conflict', `There is already a local account called ${username}.`)
              : error;
          });
        work.audit('user.create', userSubject(user), { after: userView(user) });
        work.emit('auth.user.created', userSubject(user), userEvent(user));
        return { user, oneTimePassword };
      });
    },

    /**
     * Changes an account; disabling it ends its sessions. Errors: `not_found`, `permission_denied`,
     * `last_administrator`, `version_stale`.
     */
    async update(
      caller: Caller,
      id: string,
      change: UserChange,
      expectedVersion?: number,
    ): Promise<User> {
      const known = await findToWrite(caller, id);
      if (change.tenantId !== undefined)
        await access.require(caller, 'user:write', { tenantId: change.tenantId });
      return access.denying(caller, () =>
        commit({ ...caller, tenantId: known.tenantId }, async (work) => {
          const trx = await work.trx();
          const { before, after } = await keepingAdministrator(trx, async () => {
            const found = await User.query(trx).findById(id).forUpdate().throwIfNotFound();
            checkVersion(found, expectedVersion);
            const now = await access.current(caller, trx);
            access.mustHave(now, 'user:write', found);
            if (change.tenantId !== undefined)
              access.mustHave(now, 'user:write', { tenantId: change.tenantId });
            // To disable somebody hands no power to anybody.
            const { enabled, ...rest } = change;
            if (enabled === true || Object.keys(rest).length > 0)
              await requireAsOwner(now, trx, found);
            const changed = await User.query(trx).patchAndFetchById(id, {
              ...change,
              updatedAt: work.now,
              version: found.version + 1,
            });
            return { before: found, after: changed };
          });
          if (!after.enabled)
            await endSessions(trx, { userId: id, reason: 'disabled', now: work.now });
          work.audit('user.update', userSubject(after), {
            before: userView(before),
            after: userView(after),
          });
          work.emit('auth.user.updated', userSubject(after), userEvent(after));
          return after;
        }),
      );
    },

    /**
     * Gives an account another password, for one login, and ends its sessions.
     * Errors: `not_found`, `permission_denied`, `own_account`, `not_local`, `invalid_request` (password).
     */
    async resetPassword(caller: Caller, id: string, password?: string): Promise<UserWithPassword> {
      const known = await findToWrite(caller, id);
      if (caller.session && known.id === caller.actorId) {
        throw new AppError(
          'own_account',
          'Your own password is changed with POST /api/auth/password, which asks for the current one.',
        );
      }
      if (known.providerId !== LOCAL_PROVIDER)
        throw new AppError('not_local', 'Its password is the business of the identity provider.');
      if (password !== undefined) await passwords.check(password, known.username, '/password');
      const { oneTimePassword, passwordHash } = await chosenOrMadeUp(password);
      const reset = await access.denying(caller, () =>
        commit({ ...caller, tenantId: known.tenantId }, async (work) => {
          const trx = await work.trx();
          await lockAccess(trx);
          const now = await access.current(caller, trx);
          access.mustHave(now, 'user:write', known);
          await requireAsOwner(now, trx, known);
          const user = await User.query(trx).patchAndFetchById(id, {
            passwordHash,
            mustChangePassword: true,
            updatedAt: work.now,
            version: nextVersion(),
          });
          await endSessions(trx, { userId: id, reason: 'password_change', now: work.now });
          work.audit('user.reset_password', userSubject(user));
          work.emit('auth.user.updated', userSubject(user), userEvent(user));
          return { user, oneTimePassword };
        }),
      );
      // Whoever guessed the old password must not keep the owner out with the new one.
      await throttle.forgive(localAccount(known.username));
      return reset;
    },

    /**
     * Changes the caller's own password; their other sessions end.
     * Errors: `login_failed` (current password), `invalid_request` (new one), `not_local`, `too_many_requests`.
     */
    async changeOwnPassword(
      caller: Caller,
      { currentPassword, newPassword }: { currentPassword: string; newPassword: string },
    ): Promise<void> {
      const sessionId = own(caller);
      const user = await User.query(db).findById(caller.actorId).throwIfNotFound();
      if (user.providerId !== LOCAL_PROVIDER)
        throw new AppError('not_local', 'Your password is the business of your identity provider.');
      const attempt = await throttle.attempt({
        account: localAccount(user.username),
        address: caller.address,
      });
      if (!(await passwords.verify(user.passwordHash, currentPassword))) {
        await audit.denied(
          { ...caller, tenantId: user.tenantId },
          'user.change_password',
          { reason: 'wrong password' },
          { about: user.id },
        );
        throw new AppError('login_failed', 'The current password is wrong.');
      }
      await attempt.succeeded();
      await passwords.check(newPassword, user.username, '/newPassword');
      if (currentPassword === newPassword)
        throw invalidField('body', '/newPassword', 'same', 'must not be the current password');
      const passwordHash = await passwords.hash(newPassword);
      await commit({ ...caller, tenantId: user.tenantId }, async (work) => {
        const trx = await work.trx();
        const changed = await User.query(trx)
          .findById(user.id)
          .where({ password_hash: user.passwordHash })
          .patch({
            passwordHash,
            mustChangePassword: false,
            updatedAt: work.now,
            version: nextVersion(),
          });
        // A reset that came in between wins.
        if (changed === 0) throw new AppError('login_failed', 'The current password is wrong.');
        const ended = await endSessions(trx, {
          userId: user.id,
          exceptId: sessionId,
          reason: 'password_change',
          now: work.now,
        });
        work.audit('user.change_password', userSubject(user), { after: { sessionsEnded: ended } });
      });
    },
  };
}
