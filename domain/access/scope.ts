import type { Permission } from './permissions.ts';
import type { Role } from './roles.ts';

/** The tenant whose grants reach everywhere. */
export const PLATFORM = 'platform';

/** How far a grant reaches: platform ⊃ tenant ⊃ site ⊃ device. */
export const LEVELS = ['platform', 'tenant', 'site', 'device'] as const;
export type Level = (typeof LEVELS)[number];

/** A role held at one tenant, site or device; at the platform it reaches everything. */
export type Grant = { role: Role; level: Level; targetId: string };

/**
 * Everything that somebody holds. `principals` is there when the grants are rows of the table `grants`: the
 * database can then look them up by itself, however many they are.
 */
export type Rights = { grants: readonly Grant[]; principals?: readonly string[] };

/** Where a record stands. */
export type Place = { tenantId: string; siteId?: string | null; deviceId?: string | null };

/**
 * Where a permission is held. One expression with two readings: `covers` decides for one record here,
 * `db/scopeSql.ts` for a list. They must agree.
 */
export type Scope =
  | { kind: 'everywhere' }
  | {
      kind: 'within';
      tenantIds: ReadonlySet<string>;
      siteIds: ReadonlySet<string>;
      deviceIds: ReadonlySet<string>;
      /** Where the database finds the same. */
      stored?: { principals: readonly string[]; roleIds: readonly string[] };
    };

export const NO_RIGHTS: Rights = { grants: [] };

/** Rights are shared between the requests of one person; what was worked out for them is kept as long as they are. */
const known = new WeakMap<Rights, Map<Permission, Scope>>();

/** The scope in which `rights` give `permission`. */
export function scopeOf(rights: Rights, permission: Permission): Scope {
  const scopes = known.get(rights) ?? new Map<Permission, Scope>();
  known.set(rights, scopes);
  const scope = scopes.get(permission) ?? workOut(rights, permission);
  scopes.set(permission, scope);
  return scope;
}

const workOut = (rights: Rights, permission: Permission): Scope =>
  scopeOfGrants(rights, ({ role }) => role.permissions.has(permission));

/** Where `rights` give a role. */
export const scopeOfRole = (rights: Rights, roleId: string): Scope =>
  scopeOfGrants(rights, ({ role }) => role.id === roleId);

function scopeOfGrants({ grants, principals }: Rights, counts: (grant: Grant) => boolean): Scope {
  const holding = grants.filter(counts);
  if (holding.some((grant) => grant.level === 'platform')) return { kind: 'everywhere' };
  const idsAt = (level: Level) =>
    new Set(holding.filter((grant) => grant.level === level).map((grant) => grant.targetId));
  return {
    kind: 'within',
    tenantIds: idsAt('tenant'),
    siteIds: idsAt('site'),
    deviceIds: idsAt('device'),
    ...(principals && {
      stored: { principals, roleIds: [...new Set(holding.map((grant) => grant.role.id))] },
    }),
  };
}

/** True when a record at `place` is inside `scope`. */
export const covers = (scope: Scope, place: Place): boolean =>
  scope.kind === 'everywhere' ||
  scope.tenantIds.has(place.tenantId) ||
  (typeof place.siteId === 'string' && scope.siteIds.has(place.siteId)) ||
  (typeof place.deviceId === 'string' && scope.deviceIds.has(place.deviceId));

/** True when whoever has a say at `place` has one about what stands at `other`. */
export function contains(place: Place, other: Place): boolean {
  if (typeof place.deviceId === 'string') return place.deviceId === other.deviceId;
  if (typeof place.siteId === 'string') return place.siteId === other.siteId;
  return place.tenantId === PLATFORM || place.tenantId === other.tenantId;
}

/** How many tenants, sites and devices a scope names. */
export const sizeOf = (scope: Scope): number =>
  scope.kind === 'everywhere'
    ? 0
    : scope.tenantIds.size + scope.siteIds.size + scope.deviceIds.size;

/** True when two scopes reach the same records. */
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

/** True when nothing can be inside `scope`. */
export const isNowhere = (scope: Scope): boolean => scope.kind === 'within' && sizeOf(scope) === 0;

/** A grant at a tenant, as identity headers give it. */
export const grantAtTenant = (role: Role, tenantId: string): Grant => ({
  role,
  level: tenantId === PLATFORM ? 'platform' : 'tenant',
  targetId: tenantId,
});

/** A place in words, for messages. */
export const placeInWords = ({ tenantId, siteId, deviceId }: Place): string =>
  deviceId
    ? `device ${deviceId}`
    : siteId
      ? `site ${siteId}`
      : tenantId === PLATFORM
        ? 'the platform'
        : `tenant ${tenantId}`;
