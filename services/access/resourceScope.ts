import { findResourceScope, isTenantInUse } from '../../db/access/access.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { invalidField, type FieldLocation } from '../../domain/shared/errors.ts';
import {
  covers,
  PLATFORM,
  type Level,
  type ResourceScope,
  type Scope,
} from '../../domain/access/scope.ts';
import type { Access } from './access.ts';

/**
 * A resource scope in a request. The narrowest id counts; wider ids may be omitted. Without any id,
 * or with the tenant `platform`, it is the platform.
 */
export type ResourceScopeRequest = { tenantId?: string; siteId?: string; deviceId?: string };

/**
 * Who requests a resource scope: the tenant of the request, and where the caller may know that sites
 * and devices exist.
 */
type Requester = { tenantId: string; visibleScope: Scope };

/**
 * A caller who needs `permissions` at the requested scope. Callers who may read the inventory there
 * learn from the next check which permission is missing, instead of "not found".
 */
export const requesterOf = (
  access: Access,
  caller: Caller,
  ...permissions: readonly Permission[]
): Requester => ({
  tenantId: caller.tenantId,
  visibleScope: access.scope(caller, ...permissions, 'inventory:read'),
});

/**
 * Checks that a tenant exists, for callers who may see it; for others the missing permission is
 * reported, whether it exists or not. The tenant of the request exists: a session or a gateway has
 * named it. Error: `invalid_request` at `/tenantId`.
 */
export async function checkTenant(
  db: Knex,
  id: string,
  { tenantId, visibleScope }: Requester,
  location: FieldLocation,
): Promise<void> {
  const isOwn = id === PLATFORM || id === tenantId;
  // A permission at some tenants shows that these exist.
  if (isOwn || visibleScope.kind !== 'everywhere' || (await isTenantInUse(db, id))) return;
  throw invalidField(location, '/tenantId', 'not_found', `there is no tenant with id ${id}`);
}

/**
 * Completes the ids of a requested resource scope from the records. A site or device outside the
 * visible scope is reported as not found. Error: `invalid_request` at a field of `location` if a
 * record is not found or the ids contradict each other.
 */
export async function resolveResourceScope(
  db: Knex,
  { tenantId, siteId, deviceId }: ResourceScopeRequest,
  requester: Requester,
  location: FieldLocation,
): Promise<{ level: Level; resourceScope: ResourceScope }> {
  if (deviceId === undefined && siteId === undefined) {
    const resourceScope = { tenantId: tenantId ?? PLATFORM };
    await checkTenant(db, resourceScope.tenantId, requester, location);
    return { level: resourceScope.tenantId === PLATFORM ? 'platform' : 'tenant', resourceScope };
  }
  const level = deviceId === undefined ? 'site' : 'device';
  const found = await findResourceScope(db, { siteId, deviceId });
  if (!found || !covers(requester.visibleScope, found.resourceScope)) {
    throw invalidField(
      location,
      `/${level}Id`,
      'not_found',
      `there is no ${level} with id ${deviceId ?? siteId}`,
    );
  }
  const { resourceScope, atSiteId } = found;
  const matches = (requested: string | undefined, actual: string | null) =>
    requested === undefined || requested === actual;
  if (!matches(tenantId, resourceScope.tenantId))
    throw invalidField(location, '/tenantId', 'mismatch', `is not the tenant of the ${level}`);
  if (!matches(siteId, atSiteId))
    throw invalidField(location, '/siteId', 'mismatch', 'is not the site of the device');
  return { level, resourceScope };
}
