import type { Commit } from '../../db/core/commit.ts';
import { recordOf } from '../../db/core/recordAudit.ts';
import { conflictIfTaken } from '../../db/core/constraints.ts';
import type { Knex } from '../../db/core/knex.ts';
import { CustomRole } from '../../db/models/CustomRole.ts';
import { GrantRecord } from '../../db/models/GrantRecord.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError, checkVersion, notFound } from '../../domain/shared/errors.ts';
import { coversJobType } from '../../domain/access/jobTypePatterns.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import { BUILT_IN_ROLES, type Role } from '../../domain/access/roles.ts';
import { PLATFORM_SCOPE } from '../../domain/access/scope.ts';
import type { Ids } from '../../platform/ids.ts';
import type { Access } from './access.ts';
import { createCommitAccessChange } from './commitAccessChange.ts';
import { counted } from '../../domain/shared/counted.ts';

export type Roles = ReturnType<typeof createRoles>;

export type RoleRequest = {
  id?: string;
  name: string;
  permissions: readonly Permission[];
  /** Patterns of the job types that the role names. */
  jobTypes?: readonly string[];
};

/** A role as the API returns it. `version` is null for built-in roles, which never change. */
export type RoleView = {
  id: string;
  name: string;
  builtIn: boolean;
  permissions: Permission[];
  jobTypes: string[];
  version: number | null;
};

/** Limit of custom roles, since `list` returns all of them in one page. */
const MAX_CUSTOM_ROLES = 1_000;

type Deps = { db: Knex; commit: Commit; access: Access; ids: Ids };

/** Built-in roles and custom roles. */
export function createRoles({ db, commit, access, ids }: Deps) {
  const commitChange = createCommitAccessChange({ commit, access });

  /** Permissions and job types as a role at the platform, where every role can be granted. */
  const asPlatformGrants = (permissions: readonly Permission[], jobTypes: readonly string[]) => {
    const role: Role = { id: '', name: '', permissions: new Set(permissions), jobTypes };
    return [{ role, resourceScope: PLATFORM_SCOPE }];
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

    /**
     * Creates a custom role. The caller must hold its permissions, and may use the job types that it
     * names, at the platform.
     * Errors: `permission_denied`, `conflict` (the id exists, or the limit is reached).
     */
    async create(
      caller: Caller,
      { id, name, permissions, jobTypes = [] }: RoleRequest,
    ): Promise<RoleView> {
      await access.require(caller, 'rbac:write', PLATFORM_SCOPE);
      await access.requireHolds(caller, asPlatformGrants(permissions, jobTypes));
      if (id !== undefined && BUILT_IN_ROLES.has(id))
        throw new AppError('conflict', `The role ${id} is built in.`);
      return commitChange(caller, 'rbac:write', PLATFORM_SCOPE, async (work, current, trx) => {
        access.assertHolds(current, asPlatformGrants(permissions, jobTypes));
        if ((await CustomRole.query(trx).resultSize()) >= MAX_CUSTOM_ROLES) {
          throw new AppError(
            'limit_reached',
            `The limit of ${MAX_CUSTOM_ROLES} custom roles is reached.`,
          );
        }
        const role = await CustomRole.query(trx)
          .insertAndFetch({
            id: id ?? ids.next('rol'),
            name,
            permissions: distinct(permissions),
            jobTypes: distinct(jobTypes),
            createdAt: work.now,
            updatedAt: work.now,
            version: 1,
          })
          .catch(conflictIfTaken(`A role with the id ${id} already exists.`));
        roleRecord.created(work, role);
        work.result(role.id);
        return customView(role);
      });
    },

    /**
     * Changes a custom role for everyone who has it. The caller must hold added permissions, and may
     * use added job types, at the platform. Errors: `permission_denied`, `not_found`, `built_in`, `version_conflict`.
     */
    async update(
      caller: Caller,
      id: string,
      change: Partial<Pick<RoleRequest, 'name' | 'permissions' | 'jobTypes'>>,
      expectedVersion?: number,
    ): Promise<RoleView> {
      await access.require(caller, 'rbac:write', PLATFORM_SCOPE);
      await findCustom(id);
      return commitChange(
        caller,
        'rbac:write',
        PLATFORM_SCOPE,
        async (work, currentCaller, trx) => {
          const before = await CustomRole.query(trx).findById(id).throwIfNotFound();
          checkVersion(before, expectedVersion);
          const added = (change.permissions ?? []).filter(
            (permission) => !before.permissions.includes(permission),
          );
          const addedTypes = (change.jobTypes ?? []).filter(
            (each) => !before.jobTypes.some((pattern) => coversJobType(pattern, each)),
          );
          access.assertHolds(currentCaller, asPlatformGrants(added, addedTypes));
          const after = await CustomRole.query(trx).patchAndFetchById(id, {
            ...(change.name !== undefined && { name: change.name }),
            ...(change.permissions && { permissions: distinct(change.permissions) }),
            ...(change.jobTypes && { jobTypes: distinct(change.jobTypes) }),
            updatedAt: work.now,
            version: before.version + 1,
          });
          roleRecord.updated(work, before, after);
          return customView(after);
        },
      );
    },

    /**
     * Deletes a custom role that is not granted.
     * Errors: `permission_denied`, `not_found`, `built_in`, `in_use`, `version_conflict`.
     */
    async remove(caller: Caller, id: string, expectedVersion?: number): Promise<void> {
      await access.require(caller, 'rbac:write', PLATFORM_SCOPE);
      await findCustom(id);
      // Creating a grant takes the same lock, so the role cannot be granted while it is deleted.
      await commitChange(
        caller,
        'rbac:write',
        PLATFORM_SCOPE,
        async (work, _currentCaller, trx) => {
          const role = await CustomRole.query(trx).findById(id);
          if (!role) throw notFound('role', id);
          checkVersion(role, expectedVersion);
          const useCount = await GrantRecord.query(trx).where({ role_id: id }).resultSize();
          if (useCount > 0)
            throw new AppError(
              'in_use',
              `The role ${id} has ${counted(useCount, 'grant')} to revoke first.`,
            );
          await CustomRole.query(trx).deleteById(id);
          roleRecord.deleted(work, role);
        },
      );
    },
  };
}

const roleRecord = recordOf<
  CustomRole,
  'rbac.role.created' | 'rbac.role.updated' | 'rbac.role.deleted'
>({
  type: 'role',
  auditView: ({ id, name, permissions, jobTypes }) => ({ id, name, permissions, jobTypes }),
  events: {
    created: 'rbac.role.created',
    updated: 'rbac.role.updated',
    deleted: 'rbac.role.deleted',
  },
  eventData: ({ id, name, permissions, jobTypes }) => ({
    roleId: id,
    name,
    permissions: [...permissions],
    jobTypes: [...jobTypes],
  }),
});

const distinct = <T extends string>(names: readonly T[]): T[] => [...new Set(names)].sort();

const builtInView = ({ id, name, permissions, jobTypes }: Role): RoleView => ({
  id,
  name,
  builtIn: true,
  permissions: [...permissions],
  jobTypes: [...jobTypes],
  version: null,
});
const customView = ({ id, name, permissions, jobTypes, version }: CustomRole): RoleView => ({
  id,
  name,
  builtIn: false,
  permissions,
  jobTypes,
  version,
});
