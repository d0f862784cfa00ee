import { addControllers } from '../../db/auth/accountControllers.ts';
import type { Commit } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { scopedRepository } from '../../db/core/scopedRepository.ts';
import {
  insertUser,
  isNameTaken,
  User,
  whereUsername,
  whereUserText,
} from '../../db/models/User.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import { covers } from '../../domain/access/scope.ts';
import { NO_PROVIDER } from '../../domain/auth/providers.ts';
import type { ServiceAccountDetails } from '../../domain/auth/users.ts';
import { refuseBuiltInNames } from '../../domain/shared/builtInActors.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError, checkVersion, invalidField } from '../../domain/shared/errors.ts';
import type { ListAnswer, ListRequest } from '../../domain/shared/lists.ts';
import type { Ids } from '../../platform/ids.ts';
import type { Access } from '../access/access.ts';
import { createCommitAccessChange } from '../access/commitAccessChange.ts';
import type { CancelRevoked } from '../jobs/cancelRevoked.ts';
import { createAccountChecks } from './accountChecks.ts';
import { recordAccountChange, serviceAccountRecord } from './userAudit.ts';

export type ServiceAccounts = ReturnType<typeof createServiceAccounts>;

export type ServiceAccountRequest = {
  name: string;
  displayName?: string;
  ownerId?: string;
  tenantId?: string;
};
export type ServiceAccountChange = Partial<ServiceAccountRequest> & { enabled?: boolean };
export type ServiceAccountFilter = { name?: string; q?: string };

type Deps = {
  db: Knex;
  commit: Commit;
  access: Access;
  ids: Ids;
  cancelRevoked: Pick<CancelRevoked, 'afterCommit'>;
};

/** Error: `conflict` if another service account of the tenant has the name. */
async function assertNameFree(
  trx: Knex,
  account: Pick<User, 'id' | 'tenantId' | 'username'>,
): Promise<void> {
  if (await isNameTaken(trx, { ...account, providerId: NO_PROVIDER }))
    throw new AppError(
      'conflict',
      `A service account named ${account.username} already exists in the tenant.`,
    );
}

/** Accounts of programs: users without password and provider, who authenticate by API tokens. */
export function createServiceAccounts({ db, commit, access, ids, cancelRevoked }: Deps) {
  const commitChange = createCommitAccessChange({ commit, access });
  const { assertMayRevive, requireTenant } = createAccountChecks({ db, access });
  const repository = scopedRepository<User>(User, {
    db,
    commit,
    access,
    kind: 'service account',
    readPermission: 'user:read',
    only: (query) => void query.where({ provider_id: NO_PROVIDER }),
  });

  /** The owner must be a person: the caller, or one whom the caller may read or change. */
  async function checkOwner(caller: Caller, ownerId: string): Promise<void> {
    const owner = await User.query(db).findById(ownerId).whereNot({ provider_id: NO_PROVIDER });
    const scope = access.scope(caller, 'user:read', 'user:write');
    const isKnown = owner && (ownerId === caller.actorId || covers(scope, owner));
    if (!isKnown)
      throw invalidField('body', '/ownerId', 'not_found', `there is no user with id ${ownerId}`);
  }

  return {
    /** Error: `not_found`. */
    read: (caller: Caller, id: string, actedWith?: Permission): Promise<User> =>
      repository.find(caller, id, actedWith),

    /** Errors: `not_found`, `permission_denied`. */
    findToChange: (caller: Caller, id: string): Promise<User> =>
      repository.findToAct(caller, id, 'user:write'),

    /** Service accounts inside the caller's scope. */
    list: (
      caller: Caller,
      { name, q }: ServiceAccountFilter,
      request: ListRequest,
    ): Promise<ListAnswer<User>> =>
      repository.list(caller, request, {
        refine(query) {
          if (name !== undefined) whereUsername(query, name);
          if (q !== undefined) whereUserText(query, q);
        },
      }),

    /** Errors: `permission_denied`, `invalid_request` (owner, tenant), `conflict` (name). */
    async create(caller: Caller, request: ServiceAccountRequest): Promise<ServiceAccountDetails> {
      const { name, displayName = name, tenantId = caller.tenantId } = request;
      await requireTenant(caller, tenantId);
      refuseBuiltInNames('body', { '/name': name, '/displayName': request.displayName });
      const ownerId = request.ownerId ?? (caller.session ? caller.actorId : undefined);
      if (ownerId === undefined && caller.kind !== 'system')
        throw invalidField('body', '/ownerId', 'required', 'is required');
      if (ownerId !== undefined) await checkOwner(caller, ownerId);
      return commitChange(caller, 'user:write', { tenantId }, async (work, _current, trx) => {
        const id = ids.next('usr');
        const account = {
          id,
          providerId: NO_PROVIDER,
          externalId: id,
          externalGroups: [],
          username: name,
          displayName,
          email: null,
          ownerId: ownerId ?? null,
          tenantId,
          passwordHash: null,
          mustChangePassword: false,
        };
        await assertNameFree(trx, account);
        const user = await insertUser(trx, account, work.now);
        await addControllers(trx, id, { owners: [user.ownerId] }, work.now);
        serviceAccountRecord.created(work, user);
        work.result(user.id);
        return user;
      });
    },

    /**
     * Changes an account. Disabling it ends what its tokens do, and its running jobs; other changes
     * need what issuing its tokens needs. Errors: `not_found`, `permission_denied`,
     * `invalid_request` (owner, tenant), `conflict` (name), `version_conflict`.
     */
    async update(
      caller: Caller,
      id: string,
      { name, ...change }: ServiceAccountChange,
      expectedVersion?: number,
    ): Promise<ServiceAccountDetails> {
      const known = await repository.findToAct(caller, id, 'user:write');
      if (change.tenantId !== undefined) await requireTenant(caller, change.tenantId);
      if (change.ownerId !== undefined) await checkOwner(caller, change.ownerId);
      refuseBuiltInNames('body', { '/name': name, '/displayName': change.displayName });
      const user = await commitChange(caller, 'user:write', known, async (work, current, trx) => {
        const before = await User.query(trx).findById(id).forUpdate().throwIfNotFound();
        checkVersion(before, expectedVersion);
        access.assertPermission(current, 'user:write', before);
        if (change.tenantId !== undefined)
          access.assertPermission(current, 'user:write', { tenantId: change.tenantId });
        // As for people: disabling an account needs no more than `user:write`.
        const { enabled, ...rest } = change;
        if (enabled === true || name !== undefined || Object.keys(rest).length > 0)
          await assertMayRevive(current, trx, before);
        const username = name ?? before.username;
        const { tenantId = before.tenantId } = change;
        if (username !== before.username || tenantId !== before.tenantId)
          await assertNameFree(trx, { id, username, tenantId });
        const after = await User.query(trx).patchAndFetchById(id, {
          ...change,
          username,
          updatedAt: work.now,
          version: before.version + 1,
        });
        if (after.ownerId !== before.ownerId) {
          const owners = [before.ownerId, after.ownerId];
          await addControllers(trx, id, { caller: current, owners }, work.now);
        }
        recordAccountChange(work, serviceAccountRecord, before, after);
        return after;
      });
      if (!user.enabled) await cancelRevoked.afterCommit();
      return user;
    },
  };
}
