import type { Caller } from '../domain/caller.ts';
import { AppError } from '../domain/errors.ts';
import type { Permission } from '../domain/permissions.ts';
import type { Role } from '../domain/roles.ts';
import { covers, isNowhere, placeInWords, scopeOf, type Place, type Rights, type Scope } from '../domain/scope.ts';
import type { Audit } from './audit.ts';

export type Access = ReturnType<typeof createAccess>;

/** A role and where it is given. */
export type Giving = { role: Role; place: Place };

/** Decides who may do what, and where. Every decision of the product is made here. */
export function createAccess({ audit }: { audit: Audit }) {
  const holds = (rights: Rights, permission: Permission, place: Place): boolean => covers(scopeOf(rights, permission), place);

  async function deny(caller: Caller, permission: Permission, place: Place): Promise<never> {
    const { tenantId, siteId = null, deviceId = null } = place;
    await audit.denied(caller, 'access.denied', { permission, tenantId, siteId, deviceId });
    throw new AppError('permission_denied', `Permission ${permission} is missing at ${placeInWords(place)}.`);
  }

  return {
    holds,

    /** Where the caller holds `permission`; lists and reads are narrowed to it. */
    scope: (caller: Caller, permission: Permission): Scope => scopeOf(caller.rights, permission),

    /** Throws `permission_denied` unless the caller holds `permission` at `place`. */
    async require(caller: Caller, permission: Permission, place: Place): Promise<void> {
      if (!holds(caller.rights, permission, place)) await deny(caller, permission, place);
    },

    /** Throws `permission_denied` unless the caller holds `permission` anywhere: the door of a route. */
    async requireSomewhere(caller: Caller, permission: Permission): Promise<void> {
      if (isNowhere(scopeOf(caller.rights, permission))) await deny(caller, permission, { tenantId: caller.tenantId });
    },

    /**
     * Throws `permission_denied` unless the caller holds all that is given away, where it is given: nobody hands
     * out, or takes over, more than they have.
     */
    async requireAll(caller: Caller, givings: readonly Giving[]): Promise<void> {
      for (const { role, place } of givings) {
        for (const permission of role.permissions) {
          if (!holds(caller.rights, permission, place)) await deny(caller, permission, place);
        }
      }
    },
  };
}
