import type { Caller } from '../domain/shared/caller.ts';
import { AppError } from '../domain/shared/errors.ts';
import type { Permission } from '../domain/access/permissions.ts';
import type { Role } from '../domain/access/roles.ts';
import {
  covers,
  isNowhere,
  placeInWords,
  scopeOf,
  type Place,
  type Rights,
  type Scope,
} from '../domain/access/scope.ts';
import type { Knex } from '../db/core/knex.ts';
import type { Audit } from './audit.ts';
import type { UserRights } from './access/rights.ts';

export type Access = ReturnType<typeof createAccess>;

/** A role and where it is given. */
export type Giving = { role: Role; place: Place };

/** A right that is missing, found inside a transaction. */
class Lacking extends Error {
  readonly permission: Permission;
  readonly place: Place;

  constructor(permission: Permission, place: Place) {
    super(permission);
    this.permission = permission;
    this.place = place;
  }
}

/** True when some grant reaches the place, whatever it gives. */
const hasAnything = ({ grants }: Rights, { tenantId, siteId, deviceId }: Place): boolean =>
  grants.some(
    ({ level, targetId }) =>
      level === 'platform' || [tenantId, siteId, deviceId].includes(targetId),
  );

/** Decides who may do what, and where. Every decision of the product is made here. */
export function createAccess({ audit, rights }: { audit: Audit; rights: UserRights }) {
  const holds = (rights: Rights, permission: Permission, place: Place): boolean =>
    covers(scopeOf(rights, permission), place);

  async function deny(caller: Caller, permission: Permission, place: Place): Promise<never> {
    const { tenantId, siteId = null, deviceId = null } = place;
    // In the trail of the place, for whoever watches over it; strangers leave theirs where they stand.
    const trail = hasAnything(caller.rights, place) ? place.tenantId : caller.tenantId;
    await audit.denied({ ...caller, tenantId: trail }, 'access.denied', {
      permission,
      tenantId,
      siteId,
      deviceId,
    });
    throw new AppError(
      'permission_denied',
      `Permission ${permission} is missing at ${placeInWords(place)}.`,
    );
  }

  function mustHave(caller: Caller, permission: Permission, place: Place): void {
    if (!holds(caller.rights, permission, place)) throw new Lacking(permission, place);
  }

  function mustHold(caller: Caller, givings: readonly Giving[]): void {
    for (const { role, place } of givings) {
      for (const permission of role.permissions) mustHave(caller, permission, place);
    }
  }

  async function denying<T>(caller: Caller, useCase: () => Promise<T>): Promise<T> {
    try {
      return await useCase();
    } catch (error) {
      if (error instanceof Lacking) return await deny(caller, error.permission, error.place);
      throw error;
    }
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
      if (isNowhere(scopeOf(caller.rights, permission)))
        await deny(caller, permission, { tenantId: caller.tenantId });
    },

    /**
     * Throws `permission_denied` unless the caller holds all that is given away, where it is given: nobody hands
     * out, or takes over, more than they have.
     */
    requireAll: (caller: Caller, givings: readonly Giving[]): Promise<void> =>
      denying(caller, () => {
        mustHold(caller, givings);
        return Promise.resolve();
      }),

    /** `require` and `requireAll` inside a transaction, within `denying`, for the `current` caller. */
    mustHave,
    mustHold,

    /** The caller with the rights held now. Inside a transaction that has called `lockAccess` they stay that. */
    current: async (caller: Caller, trx: Knex): Promise<Caller> => ({
      ...caller,
      rights: await rights.again(trx, caller),
    }),

    /** Runs a use case that makes its checks inside its transaction: a denial is recorded when that is over. */
    denying,
  };
}
