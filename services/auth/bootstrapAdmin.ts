import { lockAccess } from '../../db/access/access.ts';
import type { Commit, Work } from '../../db/core/commit.ts';
import { isUniqueViolation } from '../../db/core/constraints.ts';
import type { Knex } from '../../db/core/knex.ts';
import { GrantRecord } from '../../db/models/GrantRecord.ts';
import { Provider } from '../../db/models/Provider.ts';
import { findLocalUser, insertLocalUser, User, withOneTimePassword } from '../../db/models/User.ts';
import { endSessions } from '../../db/auth/sessions.ts';
import { refuseBuiltInNames } from '../../domain/shared/builtInActors.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import { LOCAL_PROVIDER, NO_PROVIDER } from '../../domain/auth/providers.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import type { Ids } from '../../platform/ids.ts';
import type { Passwords } from './passwords.ts';
import { localAccountKey, type LoginThrottle } from './loginThrottle.ts';
import { grantRecordOf } from '../access/grantAudit.ts';
import { providerRecord } from './providers/providerAudit.ts';
import { userRecord } from './userAudit.ts';

/** A local account and its one-time password. */
export type OneTimeLogin = { username: string; oneTimePassword: string };

/** The outcome of the recovery of an administrator. */
export type Recovery =
  (OneTimeLogin & { account: 'new' | 'known' }) | { refusal: Refusal; username: string };

type Refusal = 'unknown' | 'exists' | 'not_administrator';

/** Ends a transaction that is to change nothing. */
class Refused extends Error {
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(refusal);
    this.refusal = refusal;
  }
}

const DEFAULT_USERNAME = 'admin';
const ADMIN_ROLE_ID = 'platform-admin';

type Deps = {
  db: Knex;
  commit: Commit;
  ids: Ids;
  passwords: Passwords;
  loginThrottle: LoginThrottle;
};

/** Creates the first administrator, and restores access for locked-out administrators. */
export function createBootstrapAdmin({ db, commit, ids, passwords, loginThrottle }: Deps) {
  async function insertAdmin(work: Work, username: string, passwordHash: string): Promise<User> {
    refuseBuiltInNames('body', { '/username': username });
    const account = {
      id: ids.next('usr'),
      username,
      displayName: username,
      email: null,
      tenantId: PLATFORM,
      passwordHash,
      mustChangePassword: true,
    };
    const user = await insertLocalUser(await work.trx(), account, work.now);
    userRecord.created(work, user);
    return user;
  }

  async function resetPassword(work: Work, known: User, passwordHash: string): Promise<User> {
    const trx = await work.trx();
    const user = await User.query(trx).patchAndFetchById(known.id, {
      ...withOneTimePassword(passwordHash, work.now),
      enabled: true,
      updatedAt: work.now,
      version: known.version + 1,
    });
    await endSessions(trx, { userId: user.id, reason: 'password_change', now: work.now });
    const { tenantId } = user;
    userRecord.acted(work, 'reset_password', user, { before: known, after: user, tenantId });
    userRecord.emit(work, 'auth.user.updated', user, { tenantId });
    return user;
  }

  /** Assigns platform-admin at the platform unless the user has it. */
  async function assignAdminRole(work: Work, user: User): Promise<void> {
    const trx = await work.trx();
    if (await isAdministrator(trx, user.id)) return;
    const grant = await GrantRecord.query(trx).insertAndFetch({
      id: ids.next('asg'),
      kind: 'assignment',
      userId: user.id,
      providerId: null,
      externalGroup: null,
      roleId: ADMIN_ROLE_ID,
      level: 'platform',
      tenantId: PLATFORM,
      siteId: null,
      deviceId: null,
      createdBy: 'system',
      createdAt: work.now,
    });
    grantRecordOf(grant).created(work, grant);
  }

  return {
    /**
     * Creates the user `admin` with platform-admin if there is no user at all. Undefined otherwise.
     */
    async createFirst(): Promise<OneTimeLogin | undefined> {
      if (await hasUsers(db)) return undefined;
      const { oneTimePassword, passwordHash } = await passwords.generate();
      try {
        await commit(systemCaller(PLATFORM, 'first-start'), async (work) =>
          assignAdminRole(work, await insertAdmin(work, DEFAULT_USERNAME, passwordHash)),
        );
      } catch (error) {
        // Another process has created the user, and printed its password.
        if (isUniqueViolation(error)) return undefined;
        throw error;
      }
      return { username: DEFAULT_USERNAME, oneTimePassword };
    },

    /**
     * Resets the password of a local administrator: ends their sessions, enables the account and the local provider,
     * and deletes counted login attempts. Without a name: of `admin`, which is created if there are no users. A user
     * without platform-admin is assigned it only if `promote` is set, and a new administrator is created only if
     * `create` is set: a name may be misspelt. Otherwise nothing changes. For the command line only.
     */
    async recover(
      name: string | undefined,
      { promote, create }: { promote: boolean; create: boolean },
    ): Promise<Recovery> {
      const username = name ?? DEFAULT_USERNAME;
      const { oneTimePassword, passwordHash } = await passwords.generate();
      const changes = commit(systemCaller(PLATFORM, 'recover-administrator'), async (work) => {
        const trx = await work.trx();
        await lockAccess(trx);
        const known = await findLocalUser(trx, username).forUpdate();
        const mayCreate = create || (name === undefined && !(await hasUsers(trx)));
        if (known && create) throw new Refused('exists');
        if (!known && !mayCreate) throw new Refused('unknown');
        if (known && !promote && !(await isAdministrator(trx, known.id)))
          throw new Refused('not_administrator');
        await assignAdminRole(
          work,
          known
            ? await resetPassword(work, known, passwordHash)
            : await insertAdmin(work, username, passwordHash),
        );
        await enableLocalProvider(work, trx);
        return {
          username: known?.username ?? username,
          oneTimePassword,
          account: known ? 'known' : 'new',
        } as const;
      });
      try {
        const recovery = await changes;
        await loginThrottle.reset(localAccountKey(username));
        return recovery;
      } catch (error) {
        if (error instanceof Refused) return { refusal: error.refusal, username };
        throw error;
      }
    },
  };
}

/** Enables sign-ins with passwords of local accounts, if they are disabled. */
async function enableLocalProvider(work: Work, trx: Knex): Promise<void> {
  const before = await Provider.query(trx).findById(LOCAL_PROVIDER).forUpdate();
  if (!before || before.enabled) return;
  const after = await Provider.query(trx).patchAndFetchById(LOCAL_PROVIDER, {
    enabled: true,
    updatedAt: work.now,
    version: before.version + 1,
  });
  providerRecord.updated(work, before, after);
}

/** Whether there are people: a service account may have been created before the first start. */
const hasUsers = async (db: Knex): Promise<boolean> =>
  (await User.query(db).whereNot({ provider_id: NO_PROVIDER }).select('id').first()) !== undefined;

const isAdministrator = async (db: Knex, userId: string): Promise<boolean> =>
  (await GrantRecord.query(db)
    .where({ user_id: userId, role_id: ADMIN_ROLE_ID, level: 'platform' })
    .first()) !== undefined;
