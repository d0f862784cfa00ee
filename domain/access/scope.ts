import type { Permission } from './permissions.ts';
import type { Role } from './roles.ts';

/** Id of the tenant that is the installation itself. A grant at it covers every record. */
export const PLATFORM = 'platform';

/** Where records of the installation itself are. */
export const PLATFORM_SCOPE = { tenantId: PLATFORM };

/** Levels at which a role can be granted, from wide to narrow. */
export const LEVELS = ['platform', 'tenant', 'site', 'device'] as const;
export type Level = (typeof LEVELS)[number];

/**
 * A role held at the platform, a tenant, a site or a device. `owner`: the tenant of a site or a device,
 * and the site of a device.
 */
export type Grant = {
  role: Role;
  level: Level;
  targetId: string;
  owner?: { tenantId: string; siteId: string | null };
};

/**
 * Every grant of a caller. `principals` is set when the grants are rows of the table `grants`, so
 * that a query can join that table instead of receiving a long list of ids. `token`: the rights are
 * those of an API token, with the patterns of job types that it may use, null for all.
 */
export type Rights = {
  grants: readonly Grant[];
  principals?: readonly string[];
  token?: { jobTypes: readonly string[] | null };
};

/** The tenant, and the site and device if any, that a record belongs to. */
export type ResourceScope = { tenantId: string; siteId?: string | null; deviceId?: string | null };

/**
 * Where a permission is held. `covers` evaluates it for one record, `db/core/scopeSql.ts` evaluates
 * it in SQL for lists. A property test keeps the two equal
 * (test/integration/access/scopes.test.ts).
 */
export type Scope =
  | { kind: 'everywhere' }
  | {
      kind: 'within';
      tenantIds: ReadonlySet<string>;
      siteIds: ReadonlySet<string>;
      deviceIds: ReadonlySet<string>;
      /** The rows of `grants` that the ids come from. */
      stored?: { principals: readonly string[]; roleIds: readonly string[] };
    };

export const NO_RIGHTS: Rights = { grants: [] };

/** Requests of one user share a `Rights` object, so scopes are cached for as long as it lives. */
const scopeCache = new WeakMap<Rights, Map<string, Scope>>();

/** The scope in which `rights` include one of `permissions`. */
export function scopeOf(rights: Rights, ...permissions: readonly Permission[]): Scope {
  const scopes = scopeCache.get(rights) ?? new Map<string, Scope>();
  scopeCache.set(rights, scopes);
  const key = permissions.join();
  const scope = scopes.get(key) ?? computeScope(rights, permissions);
  scopes.set(key, scope);
  return scope;
}

const computeScope = (rights: Rights, permissions: readonly Permission[]): Scope =>
  scopeOfGrants(rights, ({ role }) =>
    permissions.some((permission) => role.permissions.has(permission)),
  );

/** The scope in which `rights` include the role with the id `roleId`. */
export const scopeOfRole = (rights: Rights, roleId: string): Scope =>
  scopeOfGrants(rights, ({ role }) => role.id === roleId);

function scopeOfGrants(
  { grants, principals }: Rights,
  isRelevant: (grant: Grant) => boolean,
): Scope {
  const relevant = grants.filter(isRelevant);
  if (relevant.some((grant) => grant.level === 'platform')) return { kind: 'everywhere' };
  const idsAt = (level: Level) =>
    new Set(relevant.filter((grant) => grant.level === level).map((grant) => grant.targetId));
  return {
    kind: 'within',
    tenantIds: idsAt('tenant'),
    siteIds: idsAt('site'),
    deviceIds: idsAt('device'),
    ...(principals && {
      stored: { principals, roleIds: [...new Set(relevant.map((grant) => grant.role.id))] },
    }),
  };
}

/** True when a record that belongs to `resourceScope` is inside `scope`. */
export const covers = (scope: Scope, resourceScope: ResourceScope): boolean =>
  scope.kind === 'everywhere' ||
  scope.tenantIds.has(resourceScope.tenantId) ||
  (typeof resourceScope.siteId === 'string' && scope.siteIds.has(resourceScope.siteId)) ||
  (typeof resourceScope.deviceId === 'string' && scope.deviceIds.has(resourceScope.deviceId));

/** True when `resourceScope` is the same as `other` or contains it. */
export function contains(resourceScope: ResourceScope, other: ResourceScope): boolean {
  if (typeof resourceScope.deviceId === 'string') return resourceScope.deviceId === other.deviceId;
  if (typeof resourceScope.siteId === 'string') return resourceScope.siteId === other.siteId;
  return resourceScope.tenantId === PLATFORM || resourceScope.tenantId === other.tenantId;
}

/** The rights of the named roles only. */
export const narrowToRoles = (rights: Rights, roleIds: readonly string[]): Rights => ({
  ...rights,
  grants: rights.grants.filter(({ role }) => roleIds.includes(role.id)),
});

/** True when a grant covers the tenant, or a site or a device of it. */
const reachesTenant = ({ level, targetId, owner }: Grant, tenantId: string): boolean =>
  level === 'platform' ||
  (level === 'tenant' && targetId === tenantId) ||
  owner?.tenantId === tenantId;

/** True when any grant covers the tenant, or a site or a device of it, whatever its permissions. */
export const holdsAnythingAt = ({ grants }: Rights, tenantId: string): boolean =>
  grants.some((grant) => reachesTenant(grant, tenantId));

/** True when `permission` is held at the tenant, or at a site or a device of it. */
export const holdsWithin = (
  { grants }: Rights,
  permission: Permission,
  tenantId: string,
): boolean =>
  grants.some((grant) => grant.role.permissions.has(permission) && reachesTenant(grant, tenantId));

/**
 * The tenant that a caller works at: the chosen one while the caller holds anything there,
 * otherwise that of the account, so that nobody writes to the audit log of another one, or uses its share.
 */
export const workingTenant = (
  rights: Rights,
  { chosen, home }: { chosen: string; home: string },
): string => (holdsAnythingAt(rights, chosen) ? chosen : home);

const shareTenants = new WeakMap<Rights, string>();

/** The first tenant where someone holds anything; the platform if that is there, or nowhere. */
function firstTenantOf(rights: Rights): string {
  const known = shareTenants.get(rights);
  if (known !== undefined) return known;
  const tenants = rights.grants.flatMap(({ level, targetId, owner }) =>
    level === 'platform' ? [PLATFORM] : level === 'tenant' ? [targetId] : (owner?.tenantId ?? []),
  );
  const first = tenants.includes(PLATFORM) ? PLATFORM : (tenants.toSorted()[0] ?? PLATFORM);
  shareTenants.set(rights, first);
  return first;
}

/**
 * The tenant of whose share of connections, slots and reads a caller uses. The platform has no share: its
 * staff work for all tenants. An account of the platform, as all of identity providers are, that holds
 * something in tenants only uses the share of the first of them.
 */
export const shareTenantOf = ({
  tenantId,
  rights,
}: {
  tenantId: string;
  rights?: Rights;
}): string => (tenantId === PLATFORM && rights ? firstTenantOf(rights) : tenantId);

/** Number of tenants, sites and devices in a scope; 0 for `everywhere`, which lists none. */
export const sizeOf = (scope: Scope): number =>
  scope.kind === 'everywhere'
    ? 0
    : scope.tenantIds.size + scope.siteIds.size + scope.deviceIds.size;

/** True when two scopes have the same tenants, sites and devices. */
export function sameScope(one: Scope, other: Scope): boolean {
  if (one.kind === 'everywhere' || other.kind === 'everywhere') return one.kind === other.kind;
  const same = (a: ReadonlySet<string>, b: ReadonlySet<string>) =>
    a.size === b.size && [...a].every((id) => b.has(id));
  return (
    same(one.tenantIds, other.tenantIds) &&
    same(one.siteIds, other.siteIds) &&
    same(one.deviceIds, other.deviceIds)
  );
}

/** True when no record can be inside `scope`: the permission is not held at all. */
export const isEmpty = (scope: Scope): boolean => scope.kind === 'within' && sizeOf(scope) === 0;

/** A grant of `role` at a tenant, or everywhere when the tenant is the platform. */
export const grantAtTenant = (role: Role, tenantId: string): Grant => ({
  role,
  level: tenantId === PLATFORM ? 'platform' : 'tenant',
  targetId: tenantId,
});

/** Text for error messages about a scope whose id the caller must not learn. */
export const UNREADABLE_SCOPE = 'a tenant, site or device that you may not read';

/** Text for error messages, such as `site sit_1`. */
export function describeResourceScope({ tenantId, siteId, deviceId }: ResourceScope): string {
  if (deviceId) return `device ${deviceId}`;
  if (siteId) return `site ${siteId}`;
  return tenantId === PLATFORM ? 'the platform' : `tenant ${tenantId}`;
}
