import { lockAccess } from '../../db/access/access.ts';
import type { Commit } from '../../db/commit.ts';
import { isUniqueViolation } from '../../db/core/constraints.ts';
import type { Knex } from '../../db/core/knex.ts';
import { CustomRole } from '../../db/models/CustomRole.ts';
import { GrantRecord } from '../../db/models/GrantRecord.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError, checkVersion, notFound } from '../../domain/shared/errors.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import { BUILT_IN_ROLES, type Role } from '../../domain/access/roles.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import type { Ids } from '../../platform/ids.ts';
import type { DispatchTask } from '../../temporal/contracts.ts';
import type { Access } from '../access.ts';

export type Roles = ReturnType<typeof createRoles>;

export type RoleRequest = { id?: string; name: string; permissions: readonly Permission[] };

/** A role as it is shown; built-in ones have no version, since they never change. */
export type RoleView = {
  id: string;
  name: string;
  builtIn: boolean;
  permissions: Permission[];
  version: number | null;
};

/** Custom roles that an installation may have: all of them are read at once. */
const MAX_CUSTOM_ROLES = 1_000;

const PLATFORM_PLACE = { tenantId: PLATFORM };

type Deps = { db: Knex; commit: Commit<DispatchTask>; access: Access; ids: Ids };

/** Roles: the built-in ones, and sets of permissions that an installation makes for itself. */
export function createRoles({ db, commit, access, ids }: Deps) {
  /** A role can be given at the platform, so whoever makes one must hold all of it there. */
  const giving = (permissions: readonly Permission[]) => {
    const role: Role = { id: '', name: '', permissions: new Set(permissions) };
    return [{ role, place: PLATFORM_PLACE }];
  };

  async function findCustom(id: string): Promise<CustomRole> {
    if (BUILT_IN_ROLES.has(id))
      throw new AppError('built_in', `The role ${id} is built in and cannot be changed.`);
    const role = await CustomRole.query(db).findById(id);
    if (!role) throw notFound('role', id);
    return role;
  }

  return {
    /** Every role, built-in ones first. */
    async list(): Promise<RoleView[]> {
      const custom = await CustomRole.query(db).orderBy('id').limit(MAX_CUSTOM_ROLES);
      return [...[...BUILT_IN_ROLES.values()].map(builtInView), ...custom.map(customView)];
    },

    /** Error: `not_found`. */
    async read(id: string): Promise<RoleView> {
      const builtIn = BUILT_IN_ROLES.get(id);
      return builtIn ? builtInView(builtIn) : customView(await findCustom(id));
    },

    /** Errors: `permission_denied`, `conflict` (the id is taken, or there are too many). */
    async create(caller: Caller, { id, name, permissions }: RoleRequest): Promise<RoleView> {
      await access.require(caller, 'rbac:write', PLATFORM_PLACE);
      await access.requireAll(caller, giving(permissions));
      if (id !== undefined && BUILT_IN_ROLES.has(id))
        throw new AppError('conflict', `The role ${id} is built in.`);
      const taken = () => new AppError('conflict', `There is already a role with the id ${id}.`);
      return commit({ ...caller, tenantId: PLATFORM }, async (work) => {
        const trx = await work.trx();
        if ((await CustomRole.query(trx).resultSize()) >= MAX_CUSTOM_ROLES) {
          throw new AppError('conflict', `There may be ${MAX_CUSTOM_ROLES} custom roles.`);
        }
        const role = await CustomRole.query(trx)
          .insertAndFetch({
            id: id ?? ids.next('rol'),
            name,
            permissions: distinct(permissions),
            createdAt: work.now,
            updatedAt: work.now,
            version: 1,
          })
          .catch((error: unknown) => {
            throw isUniqueViolation(error) ? taken() : error;
          });
        work.audit('role.create', subject(role), { after: view(role) });
        work.emit('rbac.role.created', subject(role), eventView(role));
        return customView(role);
      });
    },

    /** Everybody who has the role gets what is added. Errors: `permission_denied`, `not_found`, `built_in`, `version_stale`. */
    async update(
      caller: Caller,
      id: string,
      change: Partial<Pick<RoleRequest, 'name' | 'permissions'>>,
      expectedVersion?: number,
    ): Promise<RoleView> {
      await access.require(caller, 'rbac:write', PLATFORM_PLACE);
      await findCustom(id);
      return access.denying(caller, () =>
        commit({ ...caller, tenantId: PLATFORM }, async (work) => {
          const trx = await work.trx();
          await lockAccess(trx);
          const before = await CustomRole.query(trx).findById(id).throwIfNotFound();
          checkVersion(before, expectedVersion);
          const now = await access.current(caller, trx);
          access.mustHave(now, 'rbac:write', PLATFORM_PLACE);
          access.mustHold(
            now,
            giving(
              (change.permissions ?? []).filter(
                (permission) => !before.permissions.includes(permission),
              ),
            ),
          );
          const after = await CustomRole.query(trx).patchAndFetchById(id, {
            ...(change.name !== undefined && { name: change.name }),
            ...(change.permissions && { permissions: distinct(change.permissions) }),
            updatedAt: work.now,
            version: before.version + 1,
          });
          work.audit('role.update', subject(before), { before: view(before), after: view(after) });
          work.emit('rbac.role.updated', subject(after), eventView(after));
          return customView(after);
        }),
      );
    },

    /** Errors: `permission_denied`, `not_found`, `built_in`, `in_use`, `version_stale`. */
    async remove(caller: Caller, id: string, expectedVersion?: number): Promise<void> {
      await access.require(caller, 'rbac:write', PLATFORM_PLACE);
      await findCustom(id);
      await access.denying(caller, () =>
        commit({ ...caller, tenantId: PLATFORM }, async (work) => {
          const trx = await work.trx();
          // Grants take the same lock, so that none is made of a role that goes.
          await lockAccess(trx);
          access.mustHave(await access.current(caller, trx), 'rbac:write', PLATFORM_PLACE);
          const role = await CustomRole.query(trx).findById(id);
          if (!role) throw notFound('role', id);
          checkVersion(role, expectedVersion);
          const uses = await GrantRecord.query(trx).where({ role_id: id }).resultSize();
          if (uses > 0)
            throw new AppError(
              'in_use',
              `The role ${id} is given ${uses} times; take it away first.`,
            );
          await CustomRole.query(trx).deleteById(id);
          work.audit('role.delete', subject(role), { before: view(role) });
          work.emit('rbac.role.deleted', subject(role), eventView(role));
        }),
      );
    },
  };
}

const subject = ({ id }: { id: string }) => ({ type: 'role', id });
const view = ({ id, name, permissions }: CustomRole) => ({ id, name, permissions });
const eventView = ({ id, name, permissions }: CustomRole) => ({
  roleId: id,
  name,
  permissions: [...permissions],
});
const distinct = (permissions: readonly Permission[]) => [...new Set(permissions)].sort();

const builtInView = ({ id, name, permissions }: Role): RoleView => ({
  id,
  name,
  builtIn: true,
  permissions: [...permissions],
  version: null,
});
const customView = ({ id, name, permissions, version }: CustomRole): RoleView => ({
  id,
  name,
  builtIn: false,
  permissions,
  version,
});
