import {
  findGrantReasons,
  findUserAuthState,
  principalsOf,
  type GrantReason,
} from '../../db/access/access.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { invalidField, notFound } from '../../domain/shared/errors.ts';
import { PERMISSIONS, RBAC_READERS, type Permission } from '../../domain/access/permissions.ts';
import type { GuardedType } from '../../domain/access/jobTypeRights.ts';
import {
  covers,
  isEmpty,
  LEVELS,
  scopeOf,
  type Grant,
  type Level,
  type ResourceScope,
} from '../../domain/access/scope.ts';
import type { Access } from './access.ts';
import { scopeOfGrant } from '../../domain/access/tokenScope.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import { mayEverHold } from './rights.ts';
import { requesterOf, resolveResourceScope, type ResourceScopeRequest } from './resourceScope.ts';
import { counted } from '../../domain/shared/counted.ts';

export type AccessReport = ReturnType<typeof createAccessReport>;

/** Where one permission is held. `complete` is false when ids were left out. */
export type PermissionScope = {
  everywhere: boolean;
  complete: boolean;
  tenantIds: string[];
  siteIds: string[];
  deviceIds: string[];
};

/** Tenants, sites and devices each that the summary lists for a permission. */
const MAX_LISTED_IDS = 500;

/** A role that a caller holds at a scope, as their rights are now. */
export type HeldRole = {
  roleId: string;
  name: string;
  level: Level;
  tenantId: string;
  siteId: string | null;
  deviceId: string | null;
};

/** Roles that the summary lists. */
const MAX_LISTED_ROLES = 500;

export type Explanation = {
  allowed: boolean;
  reason: string;
  resourceScope: ResourceScope;
  grants: GrantReason[];
  /** Grants whose roles name the job type of the question. */
  jobTypeGrants?: GrantReason[];
};

/** What is asked about: a permission, and with `job:write` also a job type. */
export type ExplainRequest = { permission: Permission; jobType?: string };

type Deps = { db: Knex; access: Access; jobTypes: JobTypes };

/** Reports which permissions a caller or a user holds, and by which grants. */
export function createAccessReport({ db, access, jobTypes }: Deps) {
  /** Which job type is asked about. Error: `invalid_request`. */
  async function jobTypeOf({ permission, jobType }: ExplainRequest): Promise<GuardedType | null> {
    if (jobType === undefined) return null;
    if (permission !== 'job:write')
      throw invalidField('query', '/jobType', 'one_of', 'needs the permission job:write');
    await jobTypes.refreshUnknown(jobType);
    const type = jobTypes.find(jobType);
    if (type) return type;
    throw invalidField('query', '/jobType', 'unknown_job_type', `there is no job type ${jobType}`);
  }

  return {
    /** Every permission and where the caller holds it, for user interfaces. */
    summary({ rights }: Caller): Record<Permission, PermissionScope> {
      return Object.fromEntries(
        PERMISSIONS.map((permission): [Permission, PermissionScope] => {
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
                    ({ size }) => size <= MAX_LISTED_IDS,
                  ),
                  tenantIds: firstIds(scope.tenantIds),
                  siteIds: firstIds(scope.siteIds),
                  deviceIds: firstIds(scope.deviceIds),
                },
              ];
        }),
      ) as Record<Permission, PermissionScope>;
    },

    /** Every role that the caller holds, from wide to narrow. `complete` is false if some were left out. */
    heldRoles({ rights }: Caller): { roles: HeldRole[]; complete: boolean } {
      const roles = new Map(
        rights.grants.map((grant) => [
          `${LEVELS.indexOf(grant.level)} ${grant.role.id} ${grant.targetId}`,
          heldRole(grant),
        ]),
      );
      const sorted = [...roles].sort(([one], [other]) => (one < other ? -1 : 1));
      return {
        roles: sorted.slice(0, MAX_LISTED_ROLES).map(([, role]) => role),
        complete: sorted.length <= MAX_LISTED_ROLES,
      };
    },

    /** Whether the caller holds a permission at their own tenant. */
    holdsAtTenant: (caller: Caller, permission: Permission): boolean =>
      access.holds(caller.rights, permission, { tenantId: caller.tenantId }),

    /** Permissions that the caller holds in at least one scope. */
    heldPermissions: ({ rights }: Caller): Permission[] =>
      PERMISSIONS.filter((permission) => !isEmpty(scopeOf(rights, permission))),

    /**
     * Whether a user holds a permission at a resource scope, and by which grants; with a job type, also
     * whether a role names it, if that is needed. The caller needs `rbac:read` or `rbac:write` there;
     * grants outside the caller's scope are counted only. Errors: `permission_denied`, `not_found` (the
     * user), `invalid_request` (site, device or job type).
     */
    async explain(
      caller: Caller,
      userId: string,
      request: ExplainRequest,
      target: ResourceScopeRequest,
    ): Promise<Explanation> {
      const { permission } = request;
      const type = await jobTypeOf(request);
      const scope = access.scope(caller, ...RBAC_READERS);
      const { resourceScope } = await resolveResourceScope(
        db,
        target,
        requesterOf(access, caller, ...RBAC_READERS),
        'query',
      );
      if (!covers(scope, resourceScope)) await access.require(caller, 'rbac:read', resourceScope);
      const authState = await findUserAuthState(db, userId);
      if (!authState) throw notFound('user', userId);
      const principals = principalsOf(userId, authState.providerId, authState.externalGroups);
      const reasons = await findGrantReasons(db, principals, permission, resourceScope);
      const grants = reasons.filter((grant) => covers(scope, grant));
      if (!mayEverHold(authState.providerId, permission))
        return {
          allowed: false,
          reason: 'Service accounts never decide approvals.',
          resourceScope,
          grants: [],
        };
      // Without a grant here, the account may be of another tenant.
      if (!authState.enabled && reasons.length > 0)
        return {
          allowed: false,
          reason: 'The user or the identity provider is disabled.',
          resourceScope,
          grants,
        };
      const held = {
        allowed: reasons.length > 0,
        reason: reasonFor(grants.length, reasons.length - grants.length),
        resourceScope,
        grants,
      };
      if (!type) return held;
      const named = await findGrantReasons(db, principals, { jobType: type.name }, resourceScope);
      return {
        ...held,
        ...namedBy(held, type, named.length > 0),
        jobTypeGrants: named.filter((grant) => covers(scope, grant)),
      };
    },
  };
}

function heldRole(grant: Grant): HeldRole {
  const { tenantId, siteId = null, deviceId = null } = scopeOfGrant(grant);
  const { id, name } = grant.role;
  return { roleId: id, name, level: grant.level, tenantId, siteId, deviceId };
}

/** What a job type adds to an explanation. */
const namedBy = (
  { allowed, reason }: Explanation,
  { name, access }: GuardedType,
  isNamed: boolean,
): Pick<Explanation, 'allowed' | 'reason'> => {
  if (access === 'open')
    return { allowed, reason: `${reason} The job type ${name} needs no more.` };
  return {
    allowed: allowed && isNamed,
    reason: `${reason} ${isNamed ? 'A role that is granted here names' : 'No role that is granted here names'} the job type ${name}.`,
  };
};

const firstIds = (ids: ReadonlySet<string>): string[] => [...ids].sort().slice(0, MAX_LISTED_IDS);

/** Explains the result. Grants that the caller cannot read are counted, not listed. */
function reasonFor(shown: number, hidden: number): string {
  if (shown + hidden === 0) return 'No grant that covers this scope includes the permission.';
  const all = `Held by ${counted(shown + hidden, 'grant')}`;
  return hidden === 0 ? `${all}.` : `${all}, ${hidden} of them outside your scope.`;
}
