import { lockAccess } from '../../db/access/access.ts';
import type { Commit, Work } from '../../db/commit.ts';
import { isUniqueViolation } from '../../db/core/constraints.ts';
import type { Knex } from '../../db/core/knex.ts';
import { GrantRecord } from '../../db/models/GrantRecord.ts';
import { Provider } from '../../db/models/Provider.ts';
import { findLocalUser, User } from '../../db/models/User.ts';
import { endSessions } from '../../db/auth/sessions.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import { LOCAL_PROVIDER } from '../../domain/auth/providers.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import type { Ids } from '../../platform/ids.ts';
import type { DispatchTask } from '../../temporal/contracts.ts';
import type { Passwords } from './passwords.ts';
import { localAccount, type Throttle } from '../throttle.ts';
import { noteGrant } from '../grantTrail.ts';
import { userEvent, userSubject, userView } from '../userTrail.ts';

/** A local account and the password for its next login. */
export type OneTimeLogin = { username: string; oneTimePassword: string };

const FIRST = 'admin';
const ROLE = 'platform-admin';

type Deps = {
  db: Knex;
  commit: Commit<DispatchTask>;
  ids: Ids;
  passwords: Passwords;
  throttle: Throttle;
};

/** The way in for whoever runs the installation: the first administrator, and the way back in. */
export function createAdministrator({ db, commit, ids, passwords, throttle }: Deps) {
  async function insert(
    work: Work<DispatchTask>,
    username: string,
    passwordHash: string,
  ): Promise<User> {
    const user = await User.query(await work.trx()).insertAndFetch({
      id: ids.next('usr'),
      providerId: LOCAL_PROVIDER,
      externalId: null,
      externalGroups: [],
      username,
      displayName: username,
      email: null,
      tenantId: PLATFORM,
      enabled: true,
      passwordHash,
      mustChangePassword: true,
      lastLoginAt: null,
      createdAt: work.now,
      updatedAt: work.now,
      version: 1,
    });
    work.audit('user.create', userSubject(user), { after: userView(user) });
    work.emit('auth.user.created', userSubject(user), userEvent(user));
    return user;
  }

  async function reset(work: Work<DispatchTask>, known: User, passwordHash: string): Promise<User> {
    const trx = await work.trx();
    const user = await User.query(trx).patchAndFetchById(known.id, {
      passwordHash,
      mustChangePassword: true,
      enabled: true,
      updatedAt: work.now,
      version: known.version + 1,
    });
    await endSessions(trx, { userId: user.id, reason: 'password_change', now: work.now });
    work.audit('user.reset_password', userSubject(user), {
      before: userView(known),
      after: userView(user),
    });
    work.emit('auth.user.updated', userSubject(user), userEvent(user));
    return user;
  }

  async function giveRole(work: Work<DispatchTask>, user: User): Promise<void> {
    const trx = await work.trx();
    if (await isAdministrator(trx, user.id)) return;
    const grant = await GrantRecord.query(trx).insertAndFetch({
      id: ids.next('asg'),
      kind: 'assignment',
      userId: user.id,
      providerId: null,
      externalGroup: null,
      roleId: ROLE,
      level: 'platform',
      tenantId: PLATFORM,
      siteId: null,
      deviceId: null,
      createdBy: 'system',
      createdAt: work.now,
    });
    noteGrant(work, 'create', grant);
  }

  return {
    /** Makes the first administrator where there is no user at all; else undefined. */
    async first(): Promise<OneTimeLogin | undefined> {
      if (await User.query(db).select('id').first()) return undefined;
      const { oneTimePassword, passwordHash } = await passwords.makeUp();
      try {
        await commit(systemCaller(PLATFORM, 'first-start'), async (work) =>
          giveRole(work, await insert(work, FIRST, passwordHash)),
        );
      } catch (error) {
        // Another process was quicker, and has shown its password.
        if (isUniqueViolation(error)) return undefined;
        throw error;
      }
      return { username: FIRST, oneTimePassword };
    },

    /**
     * Makes a local administrator, or lets one in again with a new password; their sessions end, and attempts are
     * forgotten. Somebody who is no administrator yet is made one only when `promote` says so: undefined else. For the
     * command line only.
     */
    async recover(
      username = FIRST,
      promote = false,
    ): Promise<(OneTimeLogin & { was: 'new' | 'known' }) | undefined> {
      const found = await findLocalUser(db, username);
      if (found && !promote && !(await isAdministrator(db, found.id))) return undefined;
      const { oneTimePassword, passwordHash } = await passwords.makeUp();
      await commit(systemCaller(PLATFORM, 'recover-administrator'), async (work) => {
        const trx = await work.trx();
        await lockAccess(trx);
        const known = await findLocalUser(trx, username).forUpdate();
        await giveRole(
          work,
          known
            ? await reset(work, known, passwordHash)
            : await insert(work, username, passwordHash),
        );
        const opened = await Provider.query(trx)
          .findById(LOCAL_PROVIDER)
          .where({ enabled: false })
          .patch({ enabled: true, updatedAt: work.now });
        if (opened > 0)
          work.audit(
            'provider.update',
            { type: 'provider', id: LOCAL_PROVIDER },
            { after: { enabled: true } },
          );
      });
      await throttle.forgive(localAccount(username));
      return {
        username: found?.username ?? username,
        oneTimePassword,
        was: found ? 'known' : 'new',
      };
    },
  };
}

const isAdministrator = async (db: Knex, userId: string): Promise<boolean> =>
  (await GrantRecord.query(db)
    .where({ user_id: userId, role_id: ROLE, level: 'platform' })
    .first()) !== undefined;
