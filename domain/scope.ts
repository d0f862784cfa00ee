import type { Permission } from './permissions.ts';
import type { Role } from './roles.ts';

/** The tenant whose grants reach everywhere. */
export const PLATFORM = 'platform';

/** A role held at a tenant; held at `platform` it reaches every tenant. */
export type Grant = { roleId: string; tenantId: string };

/** Where a record stands. */
export type Place = { tenantId: string };

/**
 * Where a permission is held. One expression with two readings: `covers` decides for one record here,
 * `db/scopeSql.ts` for a list. They must agree.
 */
export type Scope = { kind: 'everywhere' } | { kind: 'tenants'; tenantIds: readonly string[] };

/** The scope in which `grants` give `permission`; unknown roles give nothing. */
export function scopeOf(grants: readonly Grant[], permission: Permission, roles: ReadonlyMap<string, Role>): Scope {
  const holding = grants.filter((grant) => roles.get(grant.roleId)?.permissions.has(permission));
  if (holding.some((grant) => grant.tenantId === PLATFORM)) return { kind: 'everywhere' };
  return { kind: 'tenants', tenantIds: [...new Set(holding.map((grant) => grant.tenantId))] };
}

/** True when a record at `place` is inside `scope`. */
export const covers = (scope: Scope, place: Place): boolean =>
  scope.kind === 'everywhere' || scope.tenantIds.includes(place.tenantId);

/** True when nothing can be inside `scope`. */
export const isNowhere = (scope: Scope): boolean => scope.kind === 'tenants' && scope.tenantIds.length === 0;
