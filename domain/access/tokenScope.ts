import type { FieldError } from '../shared/errors.ts';
import { coversJobType } from './jobTypePatterns.ts';
import { isRead, type Permission } from './permissions.ts';
import type { Role } from './roles.ts';
import {
  contains,
  PLATFORM,
  type Grant,
  type Level,
  type ResourceScope,
  type Rights,
} from './scope.ts';

/**
 * What an API token may do at most. Null means no limit: everything that its owner may do. Resource
 * scopes have all their ids: of a site its tenant, of a device its tenant and its site, if any.
 */
export type TokenScope = {
  permissions: readonly Permission[] | null;
  resourceScopes: readonly ResourceScope[] | null;
  /** Names of job types, or `area.*`, or `*`. */
  jobTypes: readonly string[] | null;
  readOnly: boolean;
};

/** True when the scope of a token includes a permission. */
export const includesPermission = (
  { permissions, readOnly }: Pick<TokenScope, 'permissions' | 'readOnly'>,
  permission: Permission,
): boolean =>
  (permissions === null || permissions.includes(permission)) && (!readOnly || isRead(permission));

/** True when rights allow jobs of a type: those of a token may not. */
export const allowsJobType = ({ token }: Rights, name: string): boolean =>
  token?.jobTypes?.some((pattern) => coversJobType(pattern, name)) ?? true;

/** The resource scope at which a role is granted. */
export const scopeOfGrant = ({ level, targetId, owner }: Grant): ResourceScope => {
  if (level === 'platform') return { tenantId: PLATFORM };
  if (level === 'tenant') return { tenantId: targetId };
  const tenantId = owner?.tenantId ?? '';
  return level === 'site'
    ? { tenantId, siteId: targetId }
    : { tenantId, siteId: owner?.siteId ?? null, deviceId: targetId };
};

function grantAt(role: Role, { tenantId, siteId, deviceId }: ResourceScope): Grant {
  const at = (level: Level, targetId: string, owner?: Grant['owner']): Grant => ({
    role,
    level,
    targetId,
    ...(owner && { owner }),
  });
  if (typeof deviceId === 'string')
    return at('device', deviceId, { tenantId, siteId: siteId ?? null });
  if (typeof siteId === 'string') return at('site', siteId, { tenantId, siteId });
  return at(tenantId === PLATFORM ? 'platform' : 'tenant', tenantId);
}

/** A grant within resource scopes: the part of it that is inside each of them. */
function grantsWithin(grant: Grant, resourceScopes: readonly ResourceScope[]): Grant[] {
  const own = scopeOfGrant(grant);
  if (resourceScopes.some((scope) => contains(scope, own))) return [grant];
  return resourceScopes
    .filter((scope) => contains(own, scope))
    .map((scope) => grantAt(grant.role, scope));
}

/** Grants with those permissions of their roles that are allowed. */
export function cutPermissions(
  grants: readonly Grant[],
  isAllowed: (permission: Permission) => boolean,
): Grant[] {
  const roles = new Map<Role, Role>();
  return grants.map((grant) => {
    const { role } = grant;
    const known = roles.get(role);
    const cut = known ?? {
      ...role,
      permissions: new Set([...role.permissions].filter(isAllowed)),
    };
    roles.set(role, cut);
    return { ...grant, role: cut };
  });
}

/**
 * The rights of a token: those of its owner, cut by its scope. They never exceed either. Within
 * resource scopes they are no rows of the table `grants` any more.
 */
export function cutRights(rights: Rights, scope: TokenScope): Rights {
  const { resourceScopes, jobTypes } = scope;
  const grants = cutPermissions(rights.grants, (each) => includesPermission(scope, each));
  return {
    ...(resourceScopes === null
      ? { ...rights, grants }
      : { grants: grants.flatMap((grant) => grantsWithin(grant, resourceScopes)) }),
    token: { jobTypes },
  };
}

/** A change of what a token may do. Missing fields stay as they are. */
export type ScopeChange = Partial<TokenScope>;

/** A null that replaces a list removes a limit. */
const widensList = <T>(
  before: readonly T[] | null,
  after: readonly T[] | null | undefined,
  isCovered: (before: T, after: T) => boolean,
): boolean =>
  after !== undefined &&
  before !== null &&
  after?.every((each) => before.some((known) => isCovered(known, each))) !== true;

/**
 * True when a resource scope of a token covers another one. A site or a device that has moved to another
 * tenant is not what was meant any more: naming it again would bring it back.
 */
const coversScope = (before: ResourceScope, after: ResourceScope): boolean =>
  contains(before, after) && (before.tenantId === after.tenantId || isPlatform(before));

const isPlatform = ({ tenantId, siteId, deviceId }: ResourceScope): boolean =>
  tenantId === PLATFORM && typeof (deviceId ?? siteId) !== 'string';

/** The fields of a change that would widen the scope of a token, as errors of the request body. */
export function wideningErrors(before: TokenScope, change: ScopeChange): FieldError[] {
  const widened = {
    permissions: widensList(before.permissions, change.permissions, (a, b) => a === b),
    resourceScopes: widensList(before.resourceScopes, change.resourceScopes, coversScope),
    jobTypes: widensList(before.jobTypes, change.jobTypes, coversJobType),
    readOnly: before.readOnly && change.readOnly === false,
  };
  return Object.entries(widened).flatMap(([field, isWidened]) =>
    isWidened ? [widening(field)] : [],
  );
}

/** The error for a field that can only be narrowed. */
export const widening = (field: string): FieldError => ({
  in: 'body',
  pointer: `/${field}`,
  code: 'widened',
  message: 'can only be narrowed; create another token for more',
});
