import type { Caller } from '../domain/caller.ts';
import { AppError } from '../domain/errors.ts';
import type { Permission } from '../domain/permissions.ts';
import { BUILT_IN_ROLES } from '../domain/roles.ts';
import { covers, isNowhere, scopeOf, type Grant, type Place, type Scope } from '../domain/scope.ts';
import type { Audit } from './audit.ts';

export type Access = ReturnType<typeof createAccess>;

/** Decides who may do what, and where. Every decision of the product is made here. */
export function createAccess({ audit }: { audit: Audit }) {
  const holds = (grants: readonly Grant[], permission: Permission, place: Place): boolean =>
    covers(scopeOf(grants, permission, BUILT_IN_ROLES), place);

  async function deny(caller: Caller, permission: Permission, place: Place): Promise<never> {
    await audit.denied(caller, 'access.denied', { permission, ...place });
    throw new AppError('permission_denied', `Permission ${permission} is missing at tenant ${place.tenantId}.`);
  }

  return {
    holds,

    /** Where the caller holds `permission`; lists and reads are narrowed to it. */
    scope: (caller: Caller, permission: Permission): Scope => scopeOf(caller.grants, permission, BUILT_IN_ROLES),

    /** Throws `permission_denied` unless the caller holds `permission` at `place`. */
    async require(caller: Caller, permission: Permission, place: Place): Promise<void> {
      if (!holds(caller.grants, permission, place)) await deny(caller, permission, place);
    },

    /** Throws `permission_denied` unless the caller holds `permission` anywhere: the door of a route. */
    async requireSomewhere(caller: Caller, permission: Permission): Promise<void> {
      const scope = scopeOf(caller.grants, permission, BUILT_IN_ROLES);
      if (isNowhere(scope)) await deny(caller, permission, { tenantId: caller.tenantId });
    },
  };
}
