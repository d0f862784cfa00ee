import { findDevicePlace, findReasons, findSitePlace, findStanding, principalsOf, type GrantRow } from '../db/access.ts';
import type { Knex } from '../db/knex.ts';
import type { Caller } from '../domain/caller.ts';
import { invalidField, notFound } from '../domain/errors.ts';
import { PERMISSIONS, type Permission } from '../domain/permissions.ts';
import { covers, isNowhere, PLATFORM, scopeOf, type Place } from '../domain/scope.ts';
import type { Access } from './access.ts';
import type { TargetRequest } from './grants.ts';

export type AccessReport = ReturnType<typeof createAccessReport>;

/** Where one permission is held. */
export type Held = { everywhere: boolean; tenantIds: string[]; siteIds: string[]; deviceIds: string[] };

export type Explanation = { allowed: boolean; reason: string; place: Place; grants: GrantRow[] };

type Deps = { db: Knex; access: Access };

/** Says what somebody may do, and why. */
export function createAccessReport({ db, access }: Deps) {
  /** The place that a question is about; unknown sites and devices, and those outside the scope, are named. */
  async function placeOf(caller: Caller, { tenantId, siteId, deviceId }: TargetRequest): Promise<Place> {
    if (siteId === undefined && deviceId === undefined) return { tenantId: tenantId ?? PLATFORM };
    const place = deviceId === undefined ? await findSitePlace(db, siteId ?? '') : await findDevicePlace(db, deviceId);
    const name = deviceId === undefined ? 'siteId' : 'deviceId';
    if (!place || !covers(access.scope(caller, 'rbac:read'), place)) {
      throw invalidField('query', `/${name}`, 'not_found', 'there is no such record');
    }
    return place;
  }

  return {
    /** Every permission of the caller with where it is held; what a client draws its buttons from. */
    summary({ rights }: Caller): Record<Permission, Held> {
      return Object.fromEntries(PERMISSIONS.map((permission): [Permission, Held] => {
        const scope = scopeOf(rights, permission);
        return scope.kind === 'everywhere'
          ? [permission, { everywhere: true, tenantIds: [], siteIds: [], deviceIds: [] }]
          : [permission, {
              everywhere: false, tenantIds: [...scope.tenantIds].sort(), siteIds: [...scope.siteIds].sort(),
              deviceIds: [...scope.deviceIds].sort(),
            }];
      })) as Record<Permission, Held>;
    },

    /** Permissions of the caller that are held at least somewhere. */
    held: ({ rights }: Caller): Permission[] => PERMISSIONS.filter((permission) => !isNowhere(scopeOf(rights, permission))),

    /**
     * Whether a user holds a permission at a place, and by which grants. The caller needs `rbac:read` there.
     * Errors: `permission_denied`, `not_found` (the user), `invalid_request` (site or device).
     */
    async explain(caller: Caller, userId: string, permission: Permission, target: TargetRequest): Promise<Explanation> {
      const place = await placeOf(caller, target);
      await access.require(caller, 'rbac:read', place);
      const standing = await findStanding(db, userId);
      if (!standing) throw notFound('user', userId);
      const principals = principalsOf(userId, standing.providerId, standing.externalGroups);
      const grants = await findReasons(db, principals, permission, place);
      if (!standing.enabled) return { allowed: false, reason: 'The user or the identity provider is disabled.', place, grants };
      const allowed = grants.length > 0;
      const reason = allowed
        ? `Held by ${grants.length === 1 ? 'one grant' : `${grants.length} grants`}.`
        : 'No grant that reaches there gives this permission.';
      return { allowed, reason, place, grants };
    },
  };
}
