import type { Caller } from '../../domain/shared/caller.ts';
import { AppError } from '../../domain/shared/errors.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import type { Role } from '../../domain/access/roles.ts';
import {
  covers,
  isEmpty,
  describeResourceScope,
  holdsWithin,
  UNREADABLE_SCOPE,
  sameScope,
  scopeOf,
  type ResourceScope,
  type Rights,
  type Scope,
} from '../../domain/access/scope.ts';
import { namesJobType, type GuardedType } from '../../domain/access/jobTypeRights.ts';
import { allowsJobType } from '../../domain/access/tokenScope.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { DeniedAttempts } from '../audit/deniedAttempts.ts';
import type { UserRights } from './rights.ts';

export type Access = ReturnType<typeof createAccess>;

/** A role and the scope at which it is granted. */
export type RoleGrant = { role: Role; resourceScope: ResourceScope };

/** What a caller needs to act on a record. */
export type ActingRights = {
  permission: Permission;
  /** Callers who hold this may know that the record exists. */
  readPermission: Permission;
  /** The error for callers who may not even know that. */
  missing: () => AppError;
};

/** What a caller lacks: a permission, or a role that names a job type or each type of a pattern. */
type Missing = Permission | { jobType: string };

/** Thrown inside a transaction; `auditDenials` turns it into `permission_denied` afterwards. */
class MissingRight extends Error {
  readonly missing: Missing;
  readonly resourceScope: ResourceScope;
  readonly isKnown: boolean;

  constructor(missing: Missing, resourceScope: ResourceScope, isKnown: boolean) {
    super(typeof missing === 'string' ? missing : missing.jobType);
    this.missing = missing;
    this.resourceScope = resourceScope;
    this.isKnown = isKnown;
  }
}

const describeMissing = (missing: Missing, where: string): string =>
  typeof missing === 'string'
    ? `Permission ${missing} is missing at ${where}.`
    : `No role that you hold at ${where} names the job type ${missing.jobType}.`;

/** The error for jobs of a type that the rights of the caller exclude. */
export const jobTypeDenied = (
  { name }: GuardedType,
  rights: Rights,
  resourceScope: ResourceScope,
): AppError =>
  new AppError(
    'permission_denied',
    allowsJobType(rights, name)
      ? describeMissing({ jobType: name }, describeResourceScope(resourceScope))
      : tokenRefuses(name),
  );

const tokenRefuses = (type: string): string => `The token does not allow jobs of the type ${type}.`;

/** True when any grant covers the resource scope, whatever its permissions. */
const hasAnyGrantAt = (
  { grants }: Rights,
  { tenantId, siteId, deviceId }: ResourceScope,
): boolean =>
  grants.some(
    ({ level, targetId }) =>
      level === 'platform' || [tenantId, siteId, deviceId].includes(targetId),
  );

/** Authorization: every permission check of the services is made here. */
export function createAccess({
  deniedAttempts,
  rights,
}: {
  deniedAttempts: DeniedAttempts;
  rights: UserRights;
}) {
  const holds = (rights: Rights, permission: Permission, resourceScope: ResourceScope): boolean =>
    covers(scopeOf(rights, permission), resourceScope);

  async function deny(
    caller: Caller,
    missing: Missing,
    resourceScope: ResourceScope,
    isKnown = true,
  ): Promise<never> {
    const { tenantId, siteId = null, deviceId = null } = resourceScope;
    // Audited in the target's tenant, where its auditors read it. A caller without any grant there
    // is audited in their own tenant, so that outsiders cannot write to another tenant's audit log.
    const isInside = hasAnyGrantAt(caller.rights, resourceScope);
    const auditTenantId = isInside ? resourceScope.tenantId : caller.tenantId;
    await deniedAttempts.record({ ...caller, tenantId: auditTenantId }, 'access.denied', {
      ...(typeof missing === 'string' ? { permission: missing } : missing),
      // Auditors of the caller's tenant learn no more than the caller.
      ...((isInside || isKnown) && { tenantId, siteId, deviceId }),
    });
    throw new AppError(
      'permission_denied',
      describeMissing(missing, isKnown ? describeResourceScope(resourceScope) : UNREADABLE_SCOPE),
    );
  }

  /** Throws `permission_denied`, and audits it, unless the caller holds `permission` there. */
  async function require(
    caller: Caller,
    permission: Permission,
    resourceScope: ResourceScope,
  ): Promise<void> {
    if (!holds(caller.rights, permission, resourceScope))
      await deny(caller, permission, resourceScope);
  }

  /**
   * Throws `permission_denied`, and audits it, if the token of a request does not allow jobs of a type.
   */
  async function requireTypeOfToken(caller: Caller, type: string): Promise<void> {
    if (allowsJobType(caller.rights, type)) return;
    await deniedAttempts.record(caller, 'access.denied', { jobType: type });
    throw new AppError('permission_denied', tokenRefuses(type));
  }

  function assertPermission(
    caller: Caller,
    permission: Permission,
    resourceScope: ResourceScope,
    { isKnown = true }: { isKnown?: boolean } = {},
  ): void {
    if (!holds(caller.rights, permission, resourceScope))
      throw new MissingRight(permission, resourceScope, isKnown);
  }

  function assertHolds(caller: Caller, roleGrants: readonly RoleGrant[]): void {
    for (const { role, resourceScope } of roleGrants) {
      // Rights of others know no limit of job types: with them a token would get around its own.
      if (caller.rights.token && caller.rights.token.jobTypes !== null)
        throw new MissingRight('job:write', resourceScope, true);
      for (const permission of role.permissions)
        assertPermission(caller, permission, resourceScope);
      for (const jobType of role.jobTypes)
        if (!namesJobType(caller.rights, jobType, resourceScope))
          throw new MissingRight({ jobType }, resourceScope, true);
    }
  }

  async function auditDenials<T>(caller: Caller, useCase: () => Promise<T>): Promise<T> {
    try {
      return await useCase();
    } catch (error) {
      if (error instanceof MissingRight)
        return await deny(caller, error.missing, error.resourceScope, error.isKnown);
      throw error;
    }
  }

  return {
    holds,

    /**
     * Where the caller holds one of `permissions`. Lists and reads return only records inside it.
     */
    scope: (caller: Caller, ...permissions: readonly Permission[]): Scope =>
      scopeOf(caller.rights, ...permissions),

    /**
     * For answers that take long: the caller reads what they could read at the start. Error:
     * `permission_denied` when their scope has changed since `initialCaller`.
     */
    assertSameScope(
      caller: Caller,
      initialCaller: Caller,
      ...permissions: readonly Permission[]
    ): void {
      const scope = ({ rights }: Caller) => scopeOf(rights, ...permissions);
      if (sameScope(scope(caller), scope(initialCaller))) return;
      throw new AppError(
        'permission_denied',
        `The scope in which you hold the permission ${permissions.join(' or ')} has changed since the beginning.`,
      );
    },

    require,

    /**
     * A record that the caller acts on. Acting needs no permission to read. Errors: `missing` for
     * callers who may neither read the record nor act on it, and `permission_denied` for callers
     * who may only read it.
     */
    async requireToAct<R extends ResourceScope>(
      caller: Caller,
      record: R | undefined,
      { permission, readPermission, missing }: ActingRights,
    ): Promise<R> {
      if (!record || !covers(scopeOf(caller.rights, permission, readPermission), record))
        throw missing();
      await require(caller, permission, record);
      return record;
    },

    requireTypeOfToken,

    /**
     * Throws `permission_denied`, and audits it, unless the rights of the caller allow jobs of a type
     * there: the token of the request must allow it, and a role must name it if its access is
     * `granted`.
     */
    async requireJobType(
      caller: Caller,
      type: GuardedType,
      resourceScope: ResourceScope,
    ): Promise<void> {
      await requireTypeOfToken(caller, type.name);
      if (type.access === 'open') return;
      await require(caller, 'job:write', resourceScope);
      if (!namesJobType(caller.rights, type.name, resourceScope))
        await deny(caller, { jobType: type.name }, resourceScope);
    },

    /**
     * Throws `permission_denied`, which names the first one, unless the caller holds one of
     * `permissions` in some scope. Routes call it.
     */
    async requireAnywhere(
      caller: Caller,
      ...permissions: readonly [Permission, ...Permission[]]
    ): Promise<void> {
      if (isEmpty(scopeOf(caller.rights, ...permissions)))
        await deny(caller, permissions[0], { tenantId: caller.tenantId });
    },

    /**
     * Throws `permission_denied` unless the caller holds `permission` at the tenant of the request, or at a site or a
     * device of it: for records of the tenant that are about what belongs to its sites and devices.
     */
    async requireWithinTenant(caller: Caller, permission: Permission): Promise<void> {
      const { rights, tenantId } = caller;
      if (!holdsWithin(rights, permission, tenantId)) await deny(caller, permission, { tenantId });
    },

    /**
     * Throws `permission_denied` unless the caller holds `permission` at some tenant, for records that belong to no
     * site or device: who holds it only there would follow or export them for ever without getting one.
     */
    async requireAtSomeTenant(caller: Caller, permission: Permission): Promise<void> {
      const scope = scopeOf(caller.rights, permission);
      if (scope.kind === 'within' && scope.tenantIds.size === 0)
        await deny(caller, permission, { tenantId: caller.tenantId });
    },

    /**
     * Throws `permission_denied` unless the caller holds every permission of these roles, and may use
     * the job types that they name, at the scopes at which they are granted. Nobody grants, or takes
     * over, more than they hold.
     */
    requireHolds: (caller: Caller, roleGrants: readonly RoleGrant[]): Promise<void> =>
      auditDenials(caller, () => {
        assertHolds(caller, roleGrants);
        return Promise.resolve();
      }),

    /**
     * `require` and `requireHolds` for use inside a transaction: within `auditDenials`, with the
     * caller from `withCurrentRights`. Unless the scope `isKnown` to the caller, the error does not
     * name it.
     */
    assertPermission,
    assertHolds,

    /**
     * The caller with rights read again. After `lockAccess` they cannot change until the commit.
     */
    withCurrentRights: async (caller: Caller, trx: Knex): Promise<Caller> => ({
      ...caller,
      rights: await rights.reload(trx, caller),
    }),

    /**
     * Runs a use case that checks permissions inside its transaction. A denial rolls the
     * transaction back, is audited afterwards and thrown as `permission_denied`.
     */
    auditDenials,
  };
}
