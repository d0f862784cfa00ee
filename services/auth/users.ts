import { guardLastAdministrator } from '../../db/access/access.ts';
import { endSessions } from '../../db/auth/sessions.ts';
import type { Commit } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { scopedRepository } from '../../db/core/scopedRepository.ts';
import {
  insertLocalUser,
  isNameTaken,
  nextVersion,
  User,
  whereGroup,
  whereUsername,
  whereUserText,
  withOneTimePassword,
} from '../../db/models/User.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import { refuseBuiltInNames } from '../../domain/shared/builtInActors.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import type { ListAnswer, ListRequest } from '../../domain/shared/lists.ts';
import { AppError, checkVersion, invalidField } from '../../domain/shared/errors.ts';
import { passwordEndOf } from '../../domain/auth/oneTimePasswords.ts';
import { LOCAL_PROVIDER, NO_PROVIDER } from '../../domain/auth/providers.ts';
import type { UserDetails } from '../../domain/auth/users.ts';
import type { Ids } from '../../platform/ids.ts';
import type { Access } from '../access/access.ts';
import { createCommitAccessChange } from '../access/commitAccessChange.ts';
import type { DeniedAttempts } from '../audit/deniedAttempts.ts';
import type { CancelRevoked } from '../jobs/cancelRevoked.ts';
import { createAccountChecks } from './accountChecks.ts';
import type { Passwords } from './passwords.ts';
import { requireSessionId } from './sessions.ts';
import { localAccountKey, type LoginThrottle } from './loginThrottle.ts';
import { recordAccountChange, userRecord } from './userAudit.ts';

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
  username?: string | undefined;
  /** A group at the identity provider, as of the last login. */
  group?: string | undefined;
  /** Text in the user name or the display name. */
  q?: string | undefined;
};

/** A user, and the generated one-time password, which is returned only once. */
export type UserWithPassword = { user: UserDetails; oneTimePassword: string | null };

type Deps = {
  db: Knex;
  commit: Commit;
  access: Access;
  ids: Ids;
  passwords: Passwords;
  loginThrottle: LoginThrottle;
  deniedAttempts: DeniedAttempts;
  cancelRevoked: Pick<CancelRevoked, 'afterCommit'>;
};

/** Users, and passwords of local accounts. */
export function createUsers({
  db,
  commit,
  access,
  ids,
  passwords,
  loginThrottle,
  deniedAttempts,
  cancelRevoked,
}: Deps) {
  const commitChange = createCommitAccessChange({ commit, access });
  const repository = scopedRepository<User>(User, {
    db,
    commit,
    access,
    kind: 'user',
    readPermission: 'user:read',
    only: (query) => void query.whereNot({ provider_id: NO_PROVIDER }),
  });

  const { assertHoldsOwnersRights, requireTenant } = createAccountChecks({ db, access });

  /** Hash of the password, or of a generated one-time password, which is returned too. */
  const hashOrGenerate = async (password: string | undefined) =>
    password === undefined
      ? passwords.generate()
      : { oneTimePassword: null, passwordHash: await passwords.hash(password) };

  return {
    /** A user that the caller may read, or has just acted on with `actedWith`. Error: `not_found`. */
    read: (caller: Caller, id: string, actedWith?: Permission): Promise<UserDetails> =>
      repository.find(caller, id, actedWith),

    /** A user that the caller may change. Errors: `not_found`, `permission_denied`. */
    findToChange: (caller: Caller, id: string): Promise<UserDetails> =>
      repository.findToAct(caller, id, 'user:write'),

    /** Users inside the caller's scope. */
    list: (
      caller: Caller,
      { username, group, q }: UserFilter,
      request: ListRequest,
    ): Promise<ListAnswer<UserDetails>> =>
      repository.list(caller, request, {
        refine(query) {
          if (username !== undefined) whereUsername(query, username);
          if (group !== undefined) whereGroup(query, group);
          if (q !== undefined) whereUserText(query, q);
        },
      }),

    /**
     * Creates a local account; without a password a one-time password is generated. Errors:
     * `permission_denied`, `invalid_request` (password, tenant), `conflict` (user name).
     */
    async create(caller: Caller, request: UserRequest): Promise<UserWithPassword> {
      const {
        username,
        displayName = username,
        email = null,
        tenantId = caller.tenantId,
      } = request;
      await requireTenant(caller, tenantId);
      refuseBuiltInNames('body', { '/username': username, '/displayName': request.displayName });
      if (request.password !== undefined)
        await passwords.check(request.password, username, '/password');
      const { oneTimePassword, passwordHash } = await hashOrGenerate(request.password);
      const mustChangePassword = oneTimePassword !== null || (request.mustChangePassword ?? true);
      return commitChange(caller, 'user:write', { tenantId }, async (work, _current, trx) => {
        const account = {
          id: ids.next('usr'),
          username,
          displayName,
          email,
          tenantId,
          passwordHash,
          mustChangePassword,
        };
        if (await isNameTaken(trx, { ...account, providerId: LOCAL_PROVIDER }))
          throw new AppError('conflict', `A local account named ${username} already exists.`);
        const user = await insertLocalUser(trx, account, work.now);
        userRecord.created(work, user);
        work.result(user.id);
        return { user, oneTimePassword };
      });
    },

    /**
     * Changes an account. Disabling it ends its sessions and running jobs. Errors: `not_found`,
     * `permission_denied`, `invalid_request` (tenant), `last_administrator`, `version_conflict`.
     */
    async update(
      caller: Caller,
      id: string,
      change: UserChange,
      expectedVersion?: number,
    ): Promise<UserDetails> {
      const known = await repository.findToAct(caller, id, 'user:write');
      if (change.tenantId !== undefined) await requireTenant(caller, change.tenantId);
      refuseBuiltInNames('body', { '/displayName': change.displayName });
      const user = await commitChange(caller, 'user:write', known, async (work, current, trx) => {
        const { before, after } = await guardLastAdministrator(trx, async () => {
          const found = await User.query(trx).findById(id).forUpdate().throwIfNotFound();
          checkVersion(found, expectedVersion);
          access.assertPermission(current, 'user:write', found);
          if (change.tenantId !== undefined)
            access.assertPermission(current, 'user:write', { tenantId: change.tenantId });
          // Disabling an account grants nothing, so it needs no more than `user:write`.
          const { enabled, ...rest } = change;
          if (enabled === true || Object.keys(rest).length > 0)
            await assertHoldsOwnersRights(current, trx, found);
          const changed = await User.query(trx).patchAndFetchById(id, {
            ...change,
            // Without an end, a change of the account would make its password valid again.
            passwordExpiresAt: passwordEndOf(found),
            updatedAt: work.now,
            version: found.version + 1,
          });
          return { before: found, after: changed };
        });
        if (!after.enabled)
          await endSessions(trx, { userId: id, reason: 'disabled', now: work.now });
        recordAccountChange(work, userRecord, before, after);
        return after;
      });
      if (!user.enabled) await cancelRevoked.afterCommit();
      return user;
    },

    /**
     * Sets a one-time password and ends the account's sessions. Errors: `not_found`,
     * `permission_denied`, `own_account`, `external_account`, `invalid_request` (password).
     */
    async resetPassword(caller: Caller, id: string, password?: string): Promise<UserWithPassword> {
      const known = await repository.findToAct(caller, id, 'user:write');
      if (caller.session && known.id === caller.actorId) {
        throw new AppError('own_account', 'Change your own password with POST /api/auth/password.');
      }
      if (known.providerId !== LOCAL_PROVIDER)
        throw new AppError(
          'external_account',
          'The identity provider manages the password of this account.',
        );
      if (password !== undefined) await passwords.check(password, known.username, '/password');
      const { oneTimePassword, passwordHash } = await hashOrGenerate(password);
      const reset = await commitChange(
        caller,
        'user:write',
        known,
        async (work, currentCaller, trx) => {
          await assertHoldsOwnersRights(currentCaller, trx, known);
          const user = await User.query(trx).patchAndFetchById(id, {
            ...withOneTimePassword(passwordHash, work.now),
            updatedAt: work.now,
            version: nextVersion(),
          });
          await endSessions(trx, { userId: id, reason: 'password_change', now: work.now });
          userRecord.acted(work, 'reset_password', user);
          userRecord.emit(work, 'auth.user.updated', user);
          work.result(id);
          return { user, oneTimePassword };
        },
      );
      // Attempts at the old password must not lock the owner out with the new one.
      await loginThrottle.reset(localAccountKey(known.username));
      return reset;
    },

    /**
     * Changes the caller's own password and ends their other sessions. Errors: `login_failed`
     * (current password), `invalid_request` (new password), `external_account`,
     * `too_many_requests`.
     */
    async changeOwnPassword(
      caller: Caller,
      { currentPassword, newPassword }: { currentPassword: string; newPassword: string },
    ): Promise<void> {
      const sessionId = requireSessionId(caller);
      const user = await User.query(db).findById(caller.actorId).throwIfNotFound();
      if (user.providerId !== LOCAL_PROVIDER)
        throw new AppError('external_account', 'Your identity provider manages your password.');
      const attempt = await loginThrottle.attempt({
        account: localAccountKey(user.username),
        address: caller.address,
      });
      const verify = () => passwords.verify(user.passwordHash, currentPassword);
      if (!(await attempt.check(verify))) {
        await deniedAttempts.record(
          { ...caller, tenantId: user.tenantId },
          'user.change_password',
          { reason: 'wrong password' },
          { accountId: user.id, subject: userRecord.subject(user) },
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
            passwordExpiresAt: null,
            updatedAt: work.now,
            version: nextVersion(),
          });
        // If the password was reset after it was verified above, the reset wins.
        if (changed === 0) throw new AppError('login_failed', 'The current password is wrong.');
        const ended = await endSessions(trx, {
          userId: user.id,
          exceptId: sessionId,
          reason: 'password_change',
          now: work.now,
        });
        userRecord.acted(work, 'change_password', user, { extra: { sessionsEnded: ended } });
        userRecord.emit(work, 'auth.user.updated', user);
      });
    },
  };
}
