import { findReasons, findStanding, principalsOf, type Reason } from '../db/access/access.ts';
import type { Knex } from '../db/core/knex.ts';
import type { Caller } from '../domain/shared/caller.ts';
import { notFound } from '../domain/shared/errors.ts';
import { PERMISSIONS, type Permission } from '../domain/access/permissions.ts';
import { covers, isNowhere, scopeOf, type Place } from '../domain/access/scope.ts';
import type { Access } from './access.ts';
import { resolveTarget, type TargetRequest } from './target.ts';

export type AccessReport = ReturnType<typeof createAccessReport>;

/** Where one permission is held; `complete` is false when there is more than is named. */
export type Held = {
  everywhere: boolean;
  complete: boolean;
  tenantIds: string[];
  siteIds: string[];
  deviceIds: string[];
};

/** Tenants, sites and devices each that a summary names for a permission. */
const MAX_NAMED = 500;

export type Explanation = { allowed: boolean; reason: string; place: Place; grants: Reason[] };

type Deps = { db: Knex; access: Access };

/** Says what somebody may do, and why. */
export function createAccessReport({ db, access }: Deps) {
  return {
    /** Every permission of the caller with where it is held; what a client draws its buttons from. */
    summary({ rights }: Caller): Record<Permission, Held> {
      return Object.fromEntries(
        PERMISSIONS.map((permission): [Permission, Held] => {
          const scope = scopeOf(rights, permission);
          return scope.kind === 'everywhere'
            ? [
                permission,
                { everywhere: true, complete: true, tenantIds: [], siteIds: [], deviceIds: [] },
              ]
            : [
                permission,
                {
                  everywhere: false,
                  complete: [scope.tenantIds, scope.siteIds, scope.deviceIds].every(
                    ({ size }) => size <= MAX_NAMED,
                  ),
                  tenantIds: named(scope.tenantIds),
                  siteIds: named(scope.siteIds),
                  deviceIds: named(scope.deviceIds),
                },
              ];
        }),
      ) as Record<Permission, Held>;
    },

    /** Whether the caller holds a permission at the tenant where they stand. */
    holdsHere: (caller: Caller, permission: Permission): boolean =>
      access.holds(caller.rights, permission, { tenantId: caller.tenantId }),

    /** Permissions of the caller that are held at least somewhere. */
    held: ({ rights }: Caller): Permission[] =>
      PERMISSIONS.filter((permission) => !isNowhere(scopeOf(rights, permission))),

    /**
     * Whether a user holds a permission at a place, and by which grants. The caller needs `rbac:read` there.
     * Errors: `permission_denied`, `not_found` (the user), `invalid_request` (site or device).
     */
    async explain(
      caller: Caller,
      userId: string,
      permission: Permission,
      target: TargetRequest,
    ): Promise<Explanation> {
      const { place } = await resolveTarget(db, target, access.scope(caller, 'rbac:read'), 'query');
      await access.require(caller, 'rbac:read', place);
      const standing = await findStanding(db, userId);
      if (!standing) throw notFound('user', userId);
      const principals = principalsOf(userId, standing.providerId, standing.externalGroups);
      const found = await findReasons(db, principals, permission, place);
      const scope = access.scope(caller, 'rbac:read');
      const grants = found.filter((grant) => covers(scope, grant));
      if (!standing.enabled)
        return {
          allowed: false,
          reason: 'The user or the identity provider is disabled.',
          place,
          grants,
        };
      return {
        allowed: found.length > 0,
        reason: reasonFor(grants.length, found.length - grants.length),
        place,
        grants,
      };
    },
  };
}

const named = (ids: ReadonlySet<string>): string[] => [...ids].sort().slice(0, MAX_NAMED);

/** In words; grants outside of what the caller may see are counted, not shown. */
function reasonFor(shown: number, hidden: number): string {
  if (shown + hidden === 0) return 'No grant that reaches there gives this permission.';
  const all = `Held by ${shown + hidden === 1 ? 'one grant' : `${shown + hidden} grants`}`;
  return hidden === 0 ? `${all}.` : `${all}, ${hidden} of them outside of what you may see.`;
}
